// floatX: a vector of WIDTH floats, such as float4; a float if WIDTH is 1
#define float1 float
#define JOIN(type, width) type##width
#define VECTOR(width) JOIN(float, width)
#define floatX VECTOR(WIDTH)

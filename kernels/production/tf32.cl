// the two parts of a float: big is x rounded to 10 bits after the point, small is the rest
#define BIG(x) as_float((as_uint(x) + 0x1000u) & 0xffffe000u)
#define SMALL(x, big) ((x) - (big))
#define CUT(x) as_float(as_uint(x) & 0xffffe000u) // what a tensor core reads of a float

// copy `bytes` bytes, filled up with zeroes to 4 floats
#define COPY(to, from, bytes) copy(to, from, bytes)
#define COPIED()
#define AWAIT(batches)
#define SHOW()

static inline void copy(__local float* to, const __global float* from, const int bytes)
{
    for (int i = 0; i < 4; i++) {
        to[i] = 4*i < bytes ? from[i] : 0.0f;
    }
}

// half: matrices from float16 to float32 and back
//
// Compilers make no vectors of vload_half and vstore_half, so the bits are converted here, eight
// numbers at a time. The exponent of a float is larger by 112; infinities and NaN have the largest
// one. Numbers are rounded to nearest, ties to even.

#define CHUNK 4096 // elements that a work-item converts at most

float8 floats_of(const ushort8 bits)
{
    const uint8 x = convert_uint8(bits), magnitude = (x & 0x7fffu) << 13;
    const uint8 special = magnitude >= 0x0f800000u ? (uint8)(0x7f800000u) : (uint8)(0u);
    const float8 scaled = as_float8(magnitude)*5192296858534827628530496329220096.0f; // 2^112
    return as_float8(as_uint8(scaled) | special | (x & 0x8000u) << 16);
}

ushort8 halves_of(const float8 x)
{
    const uint8 magnitude = as_uint8(x) & 0x7fffffffu;
    const uint8 normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13; // to even
    const uint8 subnormal = as_uint8(as_float8(magnitude) + 0.5f) - 0x3f000000u; // the sum is rounded
    const uint8 special = magnitude > 0x7f800000u ? (uint8)(0x7e00u) : (uint8)(0x7c00u);
    const uint8 finite = magnitude < 0x38800000u ? subnormal : normal;
    const uint8 all = magnitude < 0x47800000u ? finite : special;
    return convert_ushort8(all | (as_uint8(x) >> 16 & 0x8000u));
}

// Convert lines of `length` elements, `step` apart, into lines without gaps. A work-item has a part
// of one line.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void from_half(const int length, const __global ushort* restrict x, const long offset, const long step,
               const long line, __global float* restrict y)
{
    const int first = get_group_id(1)*CHUNK;
    const int end = min(first + CHUNK, length);
    x += offset + get_group_id(0)*line;
    y += get_group_id(0)*(long)length;
    int i = first;
    for (; step == 1 && i + 8 <= end; i += 8) {
        vstore8(floats_of(vload8(0, x + i)), 0, y + i);
    }
    for (; i < end; i++) {
        y[i] = floats_of((ushort8)(x[i*step])).s0;
    }
}

// Convert `length` elements. A work-item has a part of them.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void to_half(const long length, const __global float* restrict x, __global ushort* restrict y)
{
    const long first = get_group_id(0)*CHUNK;
    const long end = min(first + CHUNK, length);
    long i = first;
    for (; i + 8 <= end; i += 8) {
        vstore8(halves_of(vload8(0, x + i)), 0, y + i);
    }
    for (; i < end; i++) {
        y[i] = halves_of((float8)(x[i])).s0;
    }
}

"""Constructs of OpenCL C 1.2 that every compiler takes: each sets r, which becomes out[g].

A case is (type of r, text before the kernel, statements, the values of r as PoCL and Intel's
runtime compute them). x holds eight floats (0.5, 1.5, ...), y eight ints (-3, -2, ...), l is an
array of eight floats in local memory, and g is the work-item's number.
"""

CONSTRUCTS: list[tuple[str, str, str, list]] = [
    (
        "float",
        "",
        "float4 a = {1, 2, 3, 4}; r = a.x + a.w * x[g];",
        [3.0, 7.0, 11.0, 15.0, 19.0, 23.0, 27.0, 31.0],
    ),
    (
        "float",
        "",
        "float4 a = {0, 0, 0, 0}; a.y += x[g]; r = a.y;",
        [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
    ),
    (
        "float",
        "",
        "float4 a = (float4){x[g], 2, 3, 4}; r = a.x * a.y;",
        [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0],
    ),
    ("float", "", "r = ((float4){1, 2, 3, x[g]}).w;", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]),
    (
        "int",
        "",
        "int a[] = {1, 2, y[g]}; r = a[0] + a[2] + (int)(sizeof(a) / sizeof(a[0]));",
        [1, 2, 3, 4, 5, 6, 7, 8],
    ),
    (
        "int",
        "",
        "int a[8] = {[2] = 7, 8, [0] = y[g]}; r = a[0] * 100 + a[2] * 10 + a[3] + a[7];",
        [-222, -122, -22, 78, 178, 278, 378, 478],
    ),
    (
        "int",
        "",
        "int a[2][3] = {1, 2, 3, 4, 5, y[g]}; r = a[1][2] + a[0][1];",
        [-1, 0, 1, 2, 3, 4, 5, 6],
    ),
    (
        "int",
        "",
        "int a[2][3] = {{1}, {4, 5}}; r = a[1][1] + a[0][2] + a[0][0];",
        [6, 6, 6, 6, 6, 6, 6, 6],
    ),
    (
        "float",
        "",
        "float4 a[2] = {{1, 2, 3, 4}, (float4)(x[g])}; r = a[0].w + a[1].x;",
        [4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5],
    ),
    (
        "float",
        "",
        "float4 a[2] = {1, 2}; r = a[1].y * x[g];",
        [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0],
    ),
    (
        "float",
        "",
        "float4 a[2]; a[0].x = 1; a[0].y = x[g]; a[1] = (float4)(2); r = a[0].y + a[1].w;",
        [2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5],
    ),
    (
        "float",
        "",
        "float4 a = (float4)((float2)(1, 2), x[g], 4); r = a.y + a.z;",
        [2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5],
    ),
    (
        "int",
        "",
        'char s[] = "abc"; r = s[1] + sizeof(s) + s[3];',
        [102, 102, 102, 102, 102, 102, 102, 102],
    ),
    ("int", "", "r = 'a' + '\\n' + '\\x41' + '\\0';", [172, 172, 172, 172, 172, 172, 172, 172]),
    ("int", "", "int n = {5}; r = n + y[g];", [2, 3, 4, 5, 6, 7, 8, 9]),
    (
        "float",
        "",
        "const int n = 8; float a[n]; a[g] = x[g]; r = a[g] + n;",
        [8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5],
    ),
    (
        "int",
        "enum { A, B = 5, C };",
        "int a[C]; a[5] = y[g]; r = a[5] + B + C;",
        [8, 9, 10, 11, 12, 13, 14, 15],
    ),
    (
        "int",
        "typedef enum color { RED, GREEN } color;",
        "color c = GREEN; enum color d = RED; r = c * 10 + d + y[g];",
        [7, 8, 9, 10, 11, 12, 13, 14],
    ),
    (
        "int",
        "",
        "int a[4]; float4 v; r = sizeof(a) + sizeof(int[4]) + sizeof v + sizeof(float3) + "
        "sizeof(y[g]);",
        [68, 68, 68, 68, 68, 68, 68, 68],
    ),
    (
        "int",
        "",
        "r = sizeof(1.0f + 1) + sizeof(1.0) + sizeof('a') + sizeof(char) + sizeof(size_t);",
        [25, 25, 25, 25, 25, 25, 25, 25],
    ),
    (
        "int",
        "",
        "int a[sizeof(float4)]; a[15] = 3; r = a[15] + vec_step(float3) + vec_step((int2)(1));",
        [9, 9, 9, 9, 9, 9, 9, 9],
    ),
    (
        "long",
        "",
        "long int a = y[g]; unsigned long int b = 3; int unsigned c = 4; short int d = 5; r = a + "
        "b + c + d;",
        [9, 10, 11, 12, 13, 14, 15, 16],
    ),
    (
        "int",
        "",
        "unsigned char a = 250; a += 10; signed char b = (signed char)200; unsigned short c = "
        "65535; c++; r = a + b + c;",
        [-52, -52, -52, -52, -52, -52, -52, -52],
    ),
    (
        "int",
        "typedef int idx;",
        "idx a = y[g], *p = &a, b[2] = {1, 2}; *p += b[1]; r = a;",
        [-1, 0, 1, 2, 3, 4, 5, 6],
    ),
    (
        "int",
        "",
        "int a = 1, b = a + 1, *p = &b, c[2]; c[0] = *p; c[1] = a; r = c[0] * 10 + c[1];",
        [21, 21, 21, 21, 21, 21, 21, 21],
    ),
    ("int", "", "bool a = y[g], b = 0.5f; r = a + 2 * b;", [3, 3, 3, 2, 3, 3, 3, 3]),
    (
        "int",
        "",
        "volatile int a = y[g]; const volatile int b = 2; r = a * b;",
        [-6, -4, -2, 0, 2, 4, 6, 8],
    ),
    (
        "ulong",
        "",
        "r = 0x8000000000000000ul / 3 + (ulong)y[g];",
        [
            3074457345618258599,
            3074457345618258600,
            3074457345618258601,
            3074457345618258602,
            3074457345618258603,
            3074457345618258604,
            3074457345618258605,
            3074457345618258606,
        ],
    ),
    (
        "int",
        "",
        "r = (int)0xffffffff + 017 + 0x1Fu + (int)10000000000l;",
        [
            1410065453,
            1410065453,
            1410065453,
            1410065453,
            1410065453,
            1410065453,
            1410065453,
            1410065453,
        ],
    ),
    (
        "float",
        "",
        "float4 v; v.x = 1; v.y = 2; v.z = 3; v.w = x[g]; r = v.x + v.w;",
        [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5],
    ),
    (
        "float",
        "",
        "float4 v = (float4)(0); v.xz = (float2)(x[g], 2); v.even += (float2)(1, 1); r = v.x * 10 "
        "+ v.z;",
        [18.0, 28.0, 38.0, 48.0, 58.0, 68.0, 78.0, 88.0],
    ),
    (
        "float",
        "",
        "float4 v = (float4)(1, 2, 3, 4); v.xyzw = v.wzyx; r = v.x * 10 + v.y;",
        [43.0, 43.0, 43.0, 43.0, 43.0, 43.0, 43.0, 43.0],
    ),
    (
        "float",
        "",
        "float4 v = (float4)(1, 2, 3, 4); v.hi.x = x[g]; v.s0 -= 1; v.lo.y *= 2; r = v.x + v.y * "
        "10 + v.z;",
        [40.5, 41.5, 42.5, 43.5, 44.5, 45.5, 46.5, 47.5],
    ),
    (
        "float",
        "",
        "float4 v = (float4)(1, 2, 3, 4); r = v[g & 3]; v[g & 1] = 7; r += v.x * 10;",
        [71.0, 12.0, 73.0, 14.0, 71.0, 12.0, 73.0, 14.0],
    ),
    (
        "float",
        "",
        "float8 v = (float8)(1, 2, 3, 4, 5, 6, 7, x[g]); r = v.s7 + v.hi.lo.y + v.odd.hi.x + v.S3;",
        [16.5, 17.5, 18.5, 19.5, 20.5, 21.5, 22.5, 23.5],
    ),
    (
        "float",
        "",
        "float3 v = (float3)(1, 2, x[g]); r = v.z + v.even.x + v.odd.x + v.hi.x; float2 w = v.xy; "
        "r += w.y;",
        [6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0],
    ),
    (
        "float",
        "",
        "float16 v = (float16)(x[g]); v.sa = 3; v.sF = 4; r = v.s0 + v.sA + v.sf;",
        [7.5, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5],
    ),
    (
        "int",
        "",
        "int2 v = (int2)(1, 2); v.x++; --v.y; v.yx = v; r = v.x * 10 + v.y;",
        [12, 12, 12, 12, 12, 12, 12, 12],
    ),
    (
        "float",
        "",
        "__local float4 t[8]; t[g].x = x[g]; t[g].y = 1; barrier(CLK_LOCAL_MEM_FENCE); r = t[7 - "
        "g].x + t[g].y;",
        [8.5, 7.5, 6.5, 5.5, 4.5, 3.5, 2.5, 1.5],
    ),
    (
        "float",
        "",
        "float2 m[2][2]; m[1][0].y = x[g]; m[1][0].x = 2; r = m[1][0].y * m[1][0].x;",
        [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0],
    ),
    (
        "float",
        "",
        "float4 v = (float4)(1, 2, 3, 4); float4 *p = &v; p->y = x[g]; (*p).z = 5; r = v.y + v.z "
        "+ p[0].w;",
        [9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5, 16.5],
    ),
    (
        "int",
        "",
        "int4 a = (int4)(1, 2, 3, y[g]); int4 c = a > 2; r = c.x + c.z * 10 + c.w * 100;",
        [-10, -10, -10, -10, -10, -10, -110, -110],
    ),
    (
        "int",
        "",
        "int2 a = (int2)(1, 0), b = (int2)(y[g], 1); int2 c = a && b; int2 d = !b; int2 e = a || "
        "b; r = c.x + d.x * 10 + e.y * 100;",
        [-101, -101, -101, -110, -101, -101, -101, -101],
    ),
    (
        "float",
        "",
        "float2 a = (float2)(x[g], 2); float2 b = a > 1.0f ? a : -a; r = b.x + b.y;",
        [1.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5],
    ),
    (
        "int",
        "",
        "uint2 c = (uint2)(0x80000000u, 1u); int2 v = c ? (int2)(5, 6) : (int2)(7, 8); r = v.x * "
        "10 + v.y;",
        [58, 58, 58, 58, 58, 58, 58, 58],
    ),
    (
        "int",
        "",
        "uchar2 c = (uchar2)(0x80, 1); char2 v = select((char2)(1, 2), (char2)(3, 4), c); r = v.x "
        "* 10 + v.y;",
        [32, 32, 32, 32, 32, 32, 32, 32],
    ),
    (
        "int",
        "",
        "ushort2 c = (ushort2)(0x8000, 0x7fff); short2 v = c ? (short2)(1, 2) : (short2)(3, 4); r "
        "= v.x * 10 + v.y;",
        [14, 14, 14, 14, 14, 14, 14, 14],
    ),
    (
        "int",
        "",
        "ulong2 c = (ulong2)(1ul << 63, 1); long2 v = c ? (long2)(1, 2) : (long2)(3, 4); r = v.x "
        "* 10 + v.y;",
        [14, 14, 14, 14, 14, 14, 14, 14],
    ),
    (
        "float",
        "",
        "float2 a = x[g] > 3.0f ? (float2)(1, 2) : (float2)(3, 4); r = a.x + a.y * 10;",
        [43.0, 43.0, 43.0, 21.0, 21.0, 21.0, 21.0, 21.0],
    ),
    (
        "float",
        "",
        "float2 a = 2 * (float2)(x[g], 1) + 1; a += 1; a *= x[g]; r = a.x - a.y;",
        [-0.5, 1.5, 7.5, 17.5, 31.5, 49.5, 71.5, 97.5],
    ),
    (
        "int",
        "",
        "int4 a = (int4)(17) / (int4)(1, 2, 3, 4) % 4; r = a.x + a.y * 10 + a.z * 100;",
        [101, 101, 101, 101, 101, 101, 101, 101],
    ),
    (
        "int",
        "",
        "uint4 a = (uint4)(1, 2, 3, 4) << (uint4)(1, 2, 3, 33); r = a.x + a.w; int2 b = (int2)(1) "
        "<< 3; r += b.x;",
        [18, 18, 18, 18, 18, 18, 18, 18],
    ),
    (
        "int",
        "",
        "int2 a = ~(int2)(1, y[g]); a ^= 3; a |= 8; a = -a; r = a.x * 100 + a.y;",
        [291, 290, 289, 304, 303, 302, 301, 308],
    ),
    (
        "int",
        "",
        "float2 a = (float2)(1, 2); r = any(a == (float2)(1, 3)) + 2 * all(a < 3) + 4 * "
        "any((int2)(0, -1));",
        [7, 7, 7, 7, 7, 7, 7, 7],
    ),
    (
        "int",
        "",
        "char4 a = (char4)(1, 2, 3, 4) == (char4)(1); r = a.x + a.y; double2 d = (double2)(1, 2); "
        "long2 m = d < 2; r += m.x;",
        [-2, -2, -2, -2, -2, -2, -2, -2],
    ),
    ("int", "", "r = -(3 < 4) + (3 > 4 || y[g]) + !(y[g] && 1);", [0, 0, 0, 0, 0, 0, 0, 0]),
    (
        "int",
        "",
        "int a = y[g]; int b = (a++, a * 2); r = b + a; r += a > 0 ? 1 : a < -1 ? 2 : 3;",
        [-4, 0, 3, 4, 7, 10, 13, 16],
    ),
    (
        "float",
        "__attribute__((overloadable)) int sq(int a) { return a * a; "
        "}\n__attribute__((overloadable)) float sq(float a) { return a * a * 10; }",
        "r = sq(3) + sq(x[g]);",
        [11.5, 31.5, 71.5, 131.5, 211.5, 311.5, 431.5, 571.5],
    ),
    (
        "float",
        "__attribute__((overloadable)) float sum(float2 a) { return a.x + a.y; "
        "}\n__attribute__((overloadable)) float sum(float4 a) { return sum(a.lo) + sum(a.hi); }",
        "r = sum((float4)(x[g]));",
        [2.0, 6.0, 10.0, 14.0, 18.0, 22.0, 26.0, 30.0],
    ),
    (
        "int",
        "int add(int, int);\nint twice(int a) { return add(a, a); }\nint add(int a, int b) { "
        "return a + b; }",
        "r = twice(y[g]);",
        [-6, -4, -2, 0, 2, 4, 6, 8],
    ),
    (
        "int",
        "void set(int *p, int v) { *p = v; }\nvoid both(int *p) { return set(p, 5); }",
        "int a; both(&a); r = a + y[g];",
        [2, 3, 4, 5, 6, 7, 8, 9],
    ),
    (
        "int",
        "__kernel void inner(__global int* o) { o[get_global_id(0)] = 7; }",
        "__global int *o = (__global int*)out; inner(o); r = o[g];",
        [7, 7, 7, 7, 7, 7, 7, 7],
    ),
    (
        "float",
        "static inline float f(__local float *p, int i) { return p[i]; }",
        "l[g] = x[g]; barrier(CLK_LOCAL_MEM_FENCE); r = f(l, 7 - g);",
        [7.5, 6.5, 5.5, 4.5, 3.5, 2.5, 1.5, 0.5],
    ),
    (
        "float",
        "float f(const float a[4], int i) { return a[i]; }",
        "float a[4] = {1, 2, 3, x[g]}; r = f(a, 3);",
        [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
    ),
    (
        "int",
        "int f(int a) { if (a > 0) return 1; else if (a < 0) return -1; return 0; }",
        "r = f(y[g]) * 10;",
        [-10, -10, -10, 0, 10, 10, 10, 10],
    ),
    (
        "int",
        "int f(int n) { int s = 0; while (1) { if (n-- <= 0) return s; if (n == 2) continue; s += "
        "n; } }",
        "r = f(g);",
        [0, 0, 1, 1, 4, 8, 13, 19],
    ),
    (
        "float4",
        "float4 f(float4 a) { a.x = 9; return a; }",
        "float4 a = (float4)(x[g]); r = f(a) + a;",
        [
            9.5,
            1.0,
            1.0,
            1.0,
            10.5,
            3.0,
            3.0,
            3.0,
            11.5,
            5.0,
            5.0,
            5.0,
            12.5,
            7.0,
            7.0,
            7.0,
            13.5,
            9.0,
            9.0,
            9.0,
            14.5,
            11.0,
            11.0,
            11.0,
            15.5,
            13.0,
            13.0,
            13.0,
            16.5,
            15.0,
            15.0,
            15.0,
        ],
    ),
    (
        "float",
        "typedef struct { int a; float b[3]; } S;",
        "S s; s.a = y[g]; s.b[1] = x[g]; S t = s; t.a++; r = t.a + t.b[1] + s.a;",
        [-4.5, -1.5, 1.5, 4.5, 7.5, 10.5, 13.5, 16.5],
    ),
    (
        "float",
        "struct P { float x, y; };\nfloat len(struct P p) { return p.x * p.x + p.y; }\nstruct P "
        "make(float a) { struct P p = {a, 2}; return p; }",
        "r = len(make(x[g])) + make(1).y;",
        [4.25, 6.25, 10.25, 16.25, 24.25, 34.25, 46.25, 60.25],
    ),
    (
        "int",
        "typedef struct { char c; int i; short s; double d; } S;",
        "r = sizeof(S); S s = {1, 2, .d = 3}; r += s.c + s.i + (int)s.d;",
        [30, 30, 30, 30, 30, 30, 30, 30],
    ),
    (
        "int",
        "typedef union { float f; uint u; uchar b[4]; } U;",
        "U u; u.f = 1.0f; r = u.u >> 20; r += u.b[3] + sizeof(U);",
        [1083, 1083, 1083, 1083, 1083, 1083, 1083, 1083],
    ),
    (
        "int",
        "struct N { int v; struct { int w; } in; };",
        "struct N a[2] = {{1, {2}}, {.v = y[g], .in.w = 4}}; struct N *p = a; p++; p->v += 1; r = "
        "p->v * 10 + p->in.w + a[0].in.w;",
        [-14, -4, 6, 16, 26, 36, 46, 56],
    ),
    (
        "float",
        "typedef struct { float4 v; float s; } S;",
        "__local S t[8]; t[g].v = (float4)(x[g]); t[g].s = 1; t[g].v.y = 3; "
        "barrier(CLK_LOCAL_MEM_FENCE); r = t[7 - g].v.x + t[g].v.y + sizeof(S);",
        [42.5, 41.5, 40.5, 39.5, 38.5, 37.5, 36.5, 35.5],
    ),
    (
        "float",
        "__constant float t[4] = {1, 2, 3, 4};",
        "r = t[g & 3] * x[g];",
        [0.5, 3.0, 7.5, 14.0, 4.5, 11.0, 19.5, 30.0],
    ),
    (
        "int",
        "typedef struct { int a; int b[3]; } S;\n__constant S t[2] = {{1, {2, 3, 4}}, {5, {6, 7, "
        "8}}};\n__constant int n = 2;",
        "int a[n]; a[1] = t[g & 1].b[2]; r = a[1] + n;",
        [6, 10, 6, 10, 6, 10, 6, 10],
    ),
    (
        "float",
        "__constant float a[2] = {1, 2}; __constant float b[2] = {3, 4};",
        "__constant float *p = g & 1 ? a : b; r = p[1];",
        [4.0, 2.0, 4.0, 2.0, 4.0, 2.0, 4.0, 2.0],
    ),
    (
        "int",
        "",
        "int i = 0, s = 0;\nagain: s += i; i++; if (i < g) goto again;\nr = s;",
        [0, 0, 1, 3, 6, 10, 15, 21],
    ),
    (
        "int",
        "",
        "int s = 0; for (int i = 0; i < 5; i++) for (int j = 0; j < 5; j++) { if (i * j > g) goto "
        "end; s += 1; }\nend: r = s;",
        [6, 7, 8, 9, 13, 13, 14, 14],
    ),
    ("int", "", "if (g > 3) goto skip; r = 1; skip: r += 2;", [3, 3, 3, 3, 2, 2, 2, 2]),
    (
        "int",
        "",
        "switch (y[g]) { case -3: r = 1; case -2: r += 2; break; case 'a' - 97: r = 5; break; "
        "default: r = 9; }",
        [3, 2, 9, 5, 9, 9, 9, 9],
    ),
    (
        "int",
        "",
        "int i = 0; do { if (i == 3) continue; r += i; } while (++i < g); while (i-- > 0) if (i & "
        "1) break;\nr += i;",
        [-1, -1, 2, 4, 6, 10, 17, 23],
    ),
    (
        "int",
        "",
        "for (int i = 0, j = 10; i < j; i++, j--) r += i; for (;;) { if (r > 5) break; r++; }",
        [10, 10, 10, 10, 10, 10, 10, 10],
    ),
    (
        "int",
        "",
        "__attribute__((opencl_unroll_hint(4))) for (int i = 0; i < 4; i++) r += i;",
        [6, 6, 6, 6, 6, 6, 6, 6],
    ),
    (
        "int",
        "",
        "int a = y[g]; if (a == 0) r = 1; else if (a == 1) r = 1 + 2; else if (a == 2) r = 2 + 2; "
        "else if (a == 3) r = 3 + 2; else if (a == 4) r = 4 + 2; else if (a == 5) r = 5 + 2; else "
        "if (a == 6) r = 6 + 2; else if (a == 7) r = 7 + 2; else if (a == 8) r = 8 + 2; else if "
        "(a == 9) r = 9 + 2; else if (a == 10) r = 10 + 2; else if (a == 11) r = 11 + 2; else if "
        "(a == 12) r = 12 + 2; else if (a == 13) r = 13 + 2; else if (a == 14) r = 14 + 2; else "
        "if (a == 15) r = 15 + 2; else if (a == 16) r = 16 + 2; else if (a == 17) r = 17 + 2; "
        "else if (a == 18) r = 18 + 2; else if (a == 19) r = 19 + 2; else if (a == 20) r = 20 + "
        "2; else if (a == 21) r = 21 + 2; else if (a == 22) r = 22 + 2; else if (a == 23) r = 23 "
        "+ 2; else if (a == 24) r = 24 + 2; else if (a == 25) r = 25 + 2; else if (a == 26) r = "
        "26 + 2; else if (a == 27) r = 27 + 2; else if (a == 28) r = 28 + 2; else if (a == 29) r "
        "= 29 + 2; else if (a == 30) r = 30 + 2; else if (a == 31) r = 31 + 2; else if (a == 32) "
        "r = 32 + 2; else if (a == 33) r = 33 + 2; else if (a == 34) r = 34 + 2; else if (a == "
        "35) r = 35 + 2; else if (a == 36) r = 36 + 2; else if (a == 37) r = 37 + 2; else if (a "
        "== 38) r = 38 + 2; else if (a == 39) r = 39 + 2; else if (a == 40) r = 40 + 2; else if "
        "(a == 41) r = 41 + 2; else if (a == 42) r = 42 + 2; else if (a == 43) r = 43 + 2; else "
        "if (a == 44) r = 44 + 2; else if (a == 45) r = 45 + 2; else if (a == 46) r = 46 + 2; "
        "else if (a == 47) r = 47 + 2; else if (a == 48) r = 48 + 2; else if (a == 49) r = 49 + "
        "2; else if (a == 50) r = 50 + 2; else if (a == 51) r = 51 + 2; else if (a == 52) r = 52 "
        "+ 2; else if (a == 53) r = 53 + 2; else if (a == 54) r = 54 + 2; else if (a == 55) r = "
        "55 + 2; else if (a == 56) r = 56 + 2; else if (a == 57) r = 57 + 2; else if (a == 58) r "
        "= 58 + 2; else if (a == 59) r = 59 + 2;",
        [0, 0, 0, 1, 3, 4, 5, 6],
    ),
    (
        "int",
        "int f(int a) { if (a == 0) return 3; if (a == 1) return 4; if (a == 2) return 5; if (a "
        "== 3) return 6; if (a == 4) return 7; if (a == 5) return 8; if (a == 6) return 9; if (a "
        "== 7) return 10; if (a == 8) return 11; if (a == 9) return 12; if (a == 10) return 13; "
        "if (a == 11) return 14; if (a == 12) return 15; if (a == 13) return 16; if (a == 14) "
        "return 17; if (a == 15) return 18; if (a == 16) return 19; if (a == 17) return 20; if (a "
        "== 18) return 21; if (a == 19) return 22; if (a == 20) return 23; if (a == 21) return "
        "24; if (a == 22) return 25; if (a == 23) return 26; if (a == 24) return 27; if (a == 25) "
        "return 28; if (a == 26) return 29; if (a == 27) return 30; if (a == 28) return 31; if (a "
        "== 29) return 32; if (a == 30) return 33; if (a == 31) return 34; if (a == 32) return "
        "35; if (a == 33) return 36; if (a == 34) return 37; if (a == 35) return 38; if (a == 36) "
        "return 39; if (a == 37) return 40; if (a == 38) return 41; if (a == 39) return 42; if (a "
        "== 40) return 43; if (a == 41) return 44; if (a == 42) return 45; if (a == 43) return "
        "46; if (a == 44) return 47; if (a == 45) return 48; if (a == 46) return 49; if (a == 47) "
        "return 50; if (a == 48) return 51; if (a == 49) return 52; if (a == 50) return 53; if (a "
        "== 51) return 54; if (a == 52) return 55; if (a == 53) return 56; if (a == 54) return "
        "57; if (a == 55) return 58; if (a == 56) return 59; if (a == 57) return 60; if (a == 58) "
        "return 61; if (a == 59) return 62; if (a == 60) return 63; if (a == 61) return 64; if (a "
        "== 62) return 65; if (a == 63) return 66; if (a == 64) return 67; if (a == 65) return "
        "68; if (a == 66) return 69; if (a == 67) return 70; if (a == 68) return 71; if (a == 69) "
        "return 72; if (a == 70) return 73; if (a == 71) return 74; if (a == 72) return 75; if (a "
        "== 73) return 76; if (a == 74) return 77; if (a == 75) return 78; if (a == 76) return "
        "79; if (a == 77) return 80; if (a == 78) return 81; if (a == 79) return 82; if (a == 80) "
        "return 83; if (a == 81) return 84; if (a == 82) return 85; if (a == 83) return 86; if (a "
        "== 84) return 87; if (a == 85) return 88; if (a == 86) return 89; if (a == 87) return "
        "90; if (a == 88) return 91; if (a == 89) return 92; if (a == 90) return 93; if (a == 91) "
        "return 94; if (a == 92) return 95; if (a == 93) return 96; if (a == 94) return 97; if (a "
        "== 95) return 98; if (a == 96) return 99; if (a == 97) return 100; if (a == 98) return "
        "101; if (a == 99) return 102; return 0; }",
        "r = f(g);",
        [3, 4, 5, 6, 7, 8, 9, 10],
    ),
    (
        "int",
        "",
        "r = (y[g] & 0) + (y[g] & 1) + (y[g] & 2) + (y[g] & 3) + (y[g] & 4) + (y[g] & 5) + (y[g] "
        "& 6) + (y[g] & 7) + (y[g] & 8) + (y[g] & 9) + (y[g] & 10) + (y[g] & 11) + (y[g] & 12) + "
        "(y[g] & 13) + (y[g] & 14) + (y[g] & 15) + (y[g] & 16) + (y[g] & 17) + (y[g] & 18) + "
        "(y[g] & 19) + (y[g] & 20) + (y[g] & 21) + (y[g] & 22) + (y[g] & 23) + (y[g] & 24) + "
        "(y[g] & 25) + (y[g] & 26) + (y[g] & 27) + (y[g] & 28) + (y[g] & 29) + (y[g] & 30) + "
        "(y[g] & 31) + (y[g] & 32) + (y[g] & 33) + (y[g] & 34) + (y[g] & 35) + (y[g] & 36) + "
        "(y[g] & 37) + (y[g] & 38) + (y[g] & 39) + (y[g] & 40) + (y[g] & 41) + (y[g] & 42) + "
        "(y[g] & 43) + (y[g] & 44) + (y[g] & 45) + (y[g] & 46) + (y[g] & 47) + (y[g] & 48) + "
        "(y[g] & 49) + (y[g] & 50) + (y[g] & 51) + (y[g] & 52) + (y[g] & 53) + (y[g] & 54) + "
        "(y[g] & 55) + (y[g] & 56) + (y[g] & 57) + (y[g] & 58) + (y[g] & 59) + (y[g] & 60) + "
        "(y[g] & 61) + (y[g] & 62) + (y[g] & 63) + (y[g] & 64) + (y[g] & 65) + (y[g] & 66) + "
        "(y[g] & 67) + (y[g] & 68) + (y[g] & 69) + (y[g] & 70) + (y[g] & 71) + (y[g] & 72) + "
        "(y[g] & 73) + (y[g] & 74) + (y[g] & 75) + (y[g] & 76) + (y[g] & 77) + (y[g] & 78) + "
        "(y[g] & 79) + (y[g] & 80) + (y[g] & 81) + (y[g] & 82) + (y[g] & 83) + (y[g] & 84) + "
        "(y[g] & 85) + (y[g] & 86) + (y[g] & 87) + (y[g] & 88) + (y[g] & 89) + (y[g] & 90) + "
        "(y[g] & 91) + (y[g] & 92) + (y[g] & 93) + (y[g] & 94) + (y[g] & 95) + (y[g] & 96) + "
        "(y[g] & 97) + (y[g] & 98) + (y[g] & 99) + (y[g] & 100) + (y[g] & 101) + (y[g] & 102) + "
        "(y[g] & 103) + (y[g] & 104) + (y[g] & 105) + (y[g] & 106) + (y[g] & 107) + (y[g] & 108) "
        "+ (y[g] & 109) + (y[g] & 110) + (y[g] & 111) + (y[g] & 112) + (y[g] & 113) + (y[g] & "
        "114) + (y[g] & 115) + (y[g] & 116) + (y[g] & 117) + (y[g] & 118) + (y[g] & 119);",
        [7020, 7080, 7140, 0, 60, 120, 180, 240],
    ),
    (
        "float",
        "",
        "__local float (*t)[4] = (__local float (*)[4])l; t[g >> 2][g & 3] = x[g]; "
        "barrier(CLK_LOCAL_MEM_FENCE); r = l[7 - g];",
        [7.5, 6.5, 5.5, 4.5, 3.5, 2.5, 1.5, 0.5],
    ),
    (
        "float",
        "",
        "float a[2][4]; float (*p)[4] = a; p[1][g & 3] = x[g]; p++; r = (*p)[g & 3];",
        [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
    ),
    (
        "int",
        "",
        "int a[4] = {1, 2, 3, 4}; int *p = a + 1; r = *p++ * 10 + *p + p[-1] + (int)(p - a) + (p "
        "> a) + *(2 + a);",
        [31, 31, 31, 31, 31, 31, 31, 31],
    ),
    (
        "int",
        "",
        "const __global int *p = y; p += g; r = *p; r += p == y + g; int *q = 0; r += !q + (q == "
        "NULL);",
        [0, 1, 2, 3, 4, 5, 6, 7],
    ),
    (
        "int",
        "",
        "int a = 5; int *p = &a; int **q = &p; **q += y[g]; r = a;",
        [2, 3, 4, 5, 6, 7, 8, 9],
    ),
    (
        "int",
        "",
        "float f = x[g]; r = *(int*)&f >> 20;",
        [1008, 1020, 1026, 1030, 1033, 1035, 1037, 1039],
    ),
    (
        "int",
        "",
        "uint4 v = (uint4)(1, 2, 3, 4); uint *p = (uint*)&v; p[2] = 9; r = v.z + p[3];",
        [13, 13, 13, 13, 13, 13, 13, 13],
    ),
    (
        "int",
        "",
        "uchar4 v = as_uchar4((uint)0x04030201); r = v.x + v.w * 10; short2 s = "
        "as_short2(0x00020001); r += s.y;",
        [43, 43, 43, 43, 43, 43, 43, 43],
    ),
    (
        "int",
        "",
        "r = as_int(1.0f) >> 20; r += as_int2(0x100000002L).y; float4 f = "
        "as_float4((int4)(0x3f800000)); r += (int)f.w; r += (int)as_float2(as_long((float2)(1, "
        "2))).y;",
        [1020, 1020, 1020, 1020, 1020, 1020, 1020, 1020],
    ),
    (
        "int",
        "",
        "r = convert_uchar_sat(300) + convert_char_sat(-200) + convert_int_rte(x[g]) + "
        "convert_int_rtp(x[g]) * 10 + convert_int_rtn(-x[g]) * 100;",
        [37, -51, -141, -229, -319, -407, -497, -585],
    ),
    (
        "int",
        "",
        "uchar4 v = convert_uchar4_sat((float4)(-1, 300, 1.5f, 2.5f)); int4 w = "
        "convert_int4_rte((float4)(1.5f, 2.5f, -1.5f, 3)); r = v.x + v.y + v.z * 10 + w.x + w.y * "
        "10 + w.z * 100;",
        [87, 87, 87, 87, 87, 87, 87, 87],
    ),
    (
        "float",
        "",
        "r = convert_float_rtz(16777219) - 16777216 + convert_float_rtp(16777217) - 16777216;",
        [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0],
    ),
    (
        "int",
        "",
        "r = (int)16777217.0f - 16777216 + (16777217.0f == 16777216.0f) * 10 + (0.1f == 0.1) * "
        "100;",
        [10, 10, 10, 10, 10, 10, 10, 10],
    ),
    (
        "int",
        "",
        "float f = 3000000000.0f; r = (uint)f == 3000000000u; r += (char)300 + (uchar)-1;",
        [300, 300, 300, 300, 300, 300, 300, 300],
    ),
    (
        "float",
        "",
        "r = 0x1p-2f + 0x1.8p1f + 0xA.8p0 + 1e2f + .5f + 1.f;",
        [115.25, 115.25, 115.25, 115.25, 115.25, 115.25, 115.25, 115.25],
    ),
    (
        "float",
        "",
        "r = 7 / 2 + 7 / 2.0f + -7 / 2 + -7 % 3;",
        [2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5],
    ),
    (
        "int",
        "",
        "long2 a = convert_long2((int2)(y[g], 1)); float2 b = convert_float2(a); r = (int)b.x; "
        "half_test: ;",
        [-3, -2, -1, 0, 1, 2, 3, 4],
    ),
    (
        "float",
        "",
        "__global half *h = (__global half*)out; vstore_half(x[g], 2 * g, h); r = vload_half(2 * "
        "g, h);",
        [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
    ),
    (
        "float",
        "",
        "float a[8]; vstore4((float4)(1, 2, 3, x[g]), 1, a); float2 v = vload2(3, a); r = v.y + "
        "vload3(0, a + 4).z;",
        [3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5],
    ),
    (
        "int",
        "",
        "r = isnan(NAN) + isinf(x[g]) * 2 + isfinite(x[g]) * 4 + isequal(x[g], 0.5f) * 8 + "
        "signbit(-x[g]) * 16; int2 v = isnan((float2)(NAN, 1)); r += v.x * 100 + v.y;",
        [-71, -79, -79, -79, -79, -79, -79, -79],
    ),
    (
        "float",
        "",
        "r = mix(1.0f, 3.0f, 0.25f) + step(1.0f, x[g]) + smoothstep(0.0f, 1.0f, 0.5f) + "
        "sign(-x[g]) + clamp(x[g], 1.0f, 2.0f);",
        [2.0, 3.5, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0],
    ),
    (
        "float",
        "",
        "float4 a = (float4)(1, 2, 3, x[g]); r = dot(a, a) + length((float2)(3, 4)) + "
        "distance(1.0f, 3.0f); float3 c = cross((float3)(1, 0, 0), (float3)(0, 1, 0)); r += c.z;",
        [22.25, 24.25, 28.25, 34.25, 42.25, 52.25, 64.25, 78.25],
    ),
    (
        "int",
        "",
        "r = clz(1) + popcount(255) + mul_hi(1 << 30, 8) + rotate(1, 33) + abs_diff(3, -4) + "
        "hadd(3, 4) + rhadd(3, 4);",
        [57, 57, 57, 57, 57, 57, 57, 57],
    ),
    (
        "int",
        "",
        "r = (add_sat(2147483647, 1) == INT_MAX) + (sub_sat(0u, 1u) == 0) * 2 + (mad_sat(1 << 30, "
        "4, 1) == INT_MAX) * 4 + (upsample((short)1, (ushort)2) == 65538) * 8 + (int)abs(-5) * 16;",
        [95, 95, 95, 95, 95, 95, 95, 95],
    ),
    (
        "int",
        "",
        "uchar4 a = clz((uchar4)(1, 2, 255, 0)); r = a.x + a.y * 10 + a.w * 100; r += mul24(3, 4) "
        "+ mad24(2, 3, 4);",
        [889, 889, 889, 889, 889, 889, 889, 889],
    ),
    (
        "float",
        "",
        "r = fmin(x[g], 2.0f) + fmax(x[g], NAN) + fmod(7.5f, 2.0f) + fdim(3.0f, 1.0f) + "
        "trunc(-2.5f) + rint(2.5f) + round(2.5f);",
        [7.5, 9.5, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0],
    ),
    (
        "float",
        "",
        "float w; float f = fract(x[g], &w); int e; float m = frexp(8.0f, &e); float i; float h = "
        "modf(2.75f, &i); r = f + w * 10 + m + e + h + i;",
        [7.75, 17.75, 27.75, 37.75, 47.75, 57.75, 67.75, 77.75],
    ),
    (
        "float",
        "",
        "r = ldexp(x[g], 2) + pown(x[g], 2) + copysign(2.0f, -1.0f) + ilogb(8.0f) + "
        "native_divide(1.0f, 4.0f) + half_sqrt(4.0f) + exp2(3.0f) + maxmag(-3.0f, 2.0f) + "
        "hypot(3.0f, 4.0f);",
        [15.5, 21.5, 29.5, 39.5, 51.5, 65.5, 81.5, 99.5],
    ),
    (
        "float",
        "",
        "float4 v = max((float4)(1, 2, 3, 4), x[g]); v = fmin(v, 3.0f); r = v.x + v.y; int2 w = "
        "clamp((int2)(y[g], 9), 0, 5); r += w.x + w.y; r += min((int2)(1, 2), (int2)(2, 1)).y;",
        [9.0, 9.5, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0],
    ),
    (
        "int",
        "",
        "int4 v = shuffle((int4)(1, 2, 3, 4), (uint4)(3, 2, 1, 0)); int2 w = shuffle2((int2)(5, "
        "6), (int2)(7, 8), (uint2)(3, 0)); r = v.x * 100 + w.x * 10 + w.y; r += bitselect(1, 6, "
        "2);",
        [488, 488, 488, 488, 488, 488, 488, 488],
    ),
    (
        "int",
        "",
        "r = get_work_dim() * 100 + get_local_size(0) + get_global_size(1) + get_num_groups(0) + "
        "get_global_offset(0); for (uint d = 0; d < 3; d++) r += get_local_id(d) + "
        "get_global_id(3);",
        [110, 111, 112, 113, 114, 115, 116, 117],
    ),
    (
        "float",
        "",
        "event_t e = async_work_group_copy(l, x, 8, 0); wait_group_events(1, &e); r = l[7 - g];",
        [7.5, 6.5, 5.5, 4.5, 3.5, 2.5, 1.5, 0.5],
    ),
    (
        "float",
        "",
        "r = M_PI_F + (float)M_PI + FLT_EPSILON + CHAR_BIT + (float)M_SQRT2 + FLT_DIG + (INT_MIN "
        "< 0) + (UCHAR_MAX == 255);",
        [
            23.697399139404297,
            23.697399139404297,
            23.697399139404297,
            23.697399139404297,
            23.697399139404297,
            23.697399139404297,
            23.697399139404297,
            23.697399139404297,
        ],
    ),
    (
        "int",
        "",
        "__local int c; if (g == 0) c = 0; barrier(CLK_LOCAL_MEM_FENCE); atomic_add(&c, g); "
        "atomic_inc(&c); barrier(CLK_LOCAL_MEM_FENCE); r = c; barrier(CLK_LOCAL_MEM_FENCE); r += "
        "atomic_max(&c, 1) > 0;",
        [37, 37, 37, 37, 37, 37, 37, 37],
    ),
    (
        "float",
        "",
        "r = fma(1.0f + 0x1p-20f, (1.0f - 0x1p-20f) * 0x1p-24f, 1.0f + 0x1p-23f) == 1.0f + "
        "0x1p-23f;",
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    ),
    (
        "int",
        "#define CAT(a, b) a##b\n#define F(a, b) (a##1 + b)",
        "int v1 = 3; r = F(, 2) + CAT(v, 1) + CAT(, 4) + CAT(5, );",
        [15, 15, 15, 15, 15, 15, 15, 15],
    ),
    ("int", "#define DECL(p, n) int p##n", "DECL(, v) = y[g]; r = v;", [-3, -2, -1, 0, 1, 2, 3, 4]),
    (
        "int",
        "#define ADD3(a, b, c) (a + b + c)\n#define SUM(...) ADD3(__VA_ARGS__)\n#define CALL(f, "
        "...) f(__VA_ARGS__)",
        "r = SUM(1, 2, y[g]) + CALL(abs, -3);",
        [3, 4, 5, 6, 7, 8, 9, 10],
    ),
    (
        "int",
        "#define LOG(f, ...) f(r, ##__VA_ARGS__)\nint one(int a) { return a + 1; }\nint two(int "
        "a, int b) { return a + b; }",
        "r = LOG(one) + LOG(two, 5);",
        [6, 6, 6, 6, 6, 6, 6, 6],
    ),
    (
        "int",
        "#if __OPENCL_VERSION__ >= 120 && defined(cl_khr_fp64) && __ENDIAN_LITTLE__ && "
        "CL_VERSION_1_2 == 120\n#define FAST 1\n#else\n#error this kernel needs OpenCL 1.2\n#endif",
        "r = FAST + __LINE__;",
        [13, 13, 13, 13, 13, 13, 13, 13],
    ),
    (
        "int",
        "#if 0\ndon't\nuser@host \"open\n#endif\n#define UNUSED user@host\n#define T(x) #x",
        'r = sizeof(T(a "b" c));',
        [8, 8, 8, 8, 8, 8, 8, 8],
    ),
    (
        "int",
        "#define LONG_ONE 1 + \\\r\n 2",
        "int na\\\nme = LONG_ONE; r = name;",
        [3, 3, 3, 3, 3, 3, 3, 3],
    ),
    (
        "int",
        "#if !defined(X) && (1 ? 2 : 0) && 'a' == 97\n#define Y 5\n#elif X(\n#endif",
        "r = Y;",
        [5, 5, 5, 5, 5, 5, 5, 5],
    ),
    (
        "int",
        "#define f(x) x + f\n#define EMPTY\n#define g2 EMPTY 2",
        "int f = 3; r = f(1) + g2;",
        [6, 6, 6, 6, 6, 6, 6, 6],
    ),
    (
        "int",
        "#define AT(i, j) ((i) * 8 + \\\n (j)) /* two\n lines */\n",
        "r = AT(1,\n 2) + AT((1, 2), 3);",
        [29, 29, 29, 29, 29, 29, 29, 29],
    ),
    (
        "int",
        "",
        "r = 1;; { int r2 = y[g]; r = r2; { int r2 = 5; r += r2; } }",
        [2, 3, 4, 5, 6, 7, 8, 9],
    ),
    (
        "int",
        "",
        "const int K __attribute__((unused)) = 4; restrict_test: r = K; (void)K;",
        [4, 4, 4, 4, 4, 4, 4, 4],
    ),
    (
        "int",
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n__attribute__((always_inline)) int f(int "
        "a) { return a; }",
        "r = f(2);",
        [2, 2, 2, 2, 2, 2, 2, 2],
    ),
    ("int", "", 'printf("%d %s\\n", 1, "x"); r = 1 + (printf("") == 0);', [2, 2, 2, 2, 2, 2, 2, 2]),
    (
        "int",
        "",
        "int x2 = 08.5f; r = x2 + (int)0.09 + 0xFEu;",
        [262, 262, 262, 262, 262, 262, 262, 262],
    ),
    ("int", "", "int a[3][2] = {{1,2},{3},}; r = a[1][0] + a[2][1];", [3, 3, 3, 3, 3, 3, 3, 3]),
    (
        "int",
        "typedef struct { int x, y; } V;\nV add(V a, V b) { V c = {a.x + b.x, a.y + b.y}; return "
        "c; }",
        "V s = {0}; for (int i = 0; i <= g; i++) { V d = {i, 1}; s = add(s, d); } r = s.x * 10 + "
        "s.y;",
        [1, 12, 33, 64, 105, 156, 217, 288],
    ),
    (
        "int",
        "typedef struct { int x; float4 v; } V;",
        "V a[2]; a[g & 1].v = (float4)(g); a[g & 1].v.z += 2; a[g&1].x = 3; r = a[g & 1].v.z + "
        "a[g & 1].x;",
        [5, 6, 7, 8, 9, 10, 11, 12],
    ),
    (
        "int",
        "struct L { int v; struct L *next; };",
        "struct L a = {1, 0}, b = {2, &a}; struct L *p = &b; while (p) { r += p->v; p = p->next; }",
        [3, 3, 3, 3, 3, 3, 3, 3],
    ),
    (
        "float",
        "float f(float *a, int n) { float s = 0; for (int i = 0; i < n; ++i) s += a[i]; return s; "
        "}",
        "float a[4]; for (int i = 0; i < 4; i++) a[i] = x[(g + i) & 7]; r = f(a, 4) + f(&a[1], 2);",
        [12.0, 18.0, 24.0, 30.0, 36.0, 34.0, 24.0, 14.0],
    ),
    (
        "int",
        "void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; }",
        "int a = 1, b = g; swap(&a, &b); r = a * 10 + b;",
        [1, 11, 21, 31, 41, 51, 61, 71],
    ),
    (
        "float",
        "",
        "float8 v = vload8(0, x); r = v.s0 + v.s7; float4 w = v.even; r += w.w; r += dot(v.lo, "
        "v.hi);",
        [67.5, 67.5, 67.5, 67.5, 67.5, 67.5, 67.5, 67.5],
    ),
    (
        "int",
        "",
        "int8 v = (int8)(1,2,3,4,5,6,7,8); v.s0246 += 1; v.odd = v.even; r = v.s1 * 100 + v.s7;",
        [208, 208, 208, 208, 208, 208, 208, 208],
    ),
    (
        "int",
        "#define X(a) case a: r = a * 2; break;",
        "switch (g) { X(0) X(1) X(2) default: r = -1; }",
        [0, 2, 4, -1, -1, -1, -1, -1],
    ),
    ("int", "", "int i = g; r = i++ + ++i; r += i-- - --i;", [4, 6, 8, 10, 12, 14, 16, 18]),
    (
        "int",
        "",
        "unsigned a = 5; int b = -3; r = (a + b > 3) + (b < (int)a) * 2 + (b < a) * 4;",
        [2, 2, 2, 2, 2, 2, 2, 2],
    ),
    (
        "int",
        "",
        "char c = 127; c++; r = c; uchar u = 0; u--; r += u; short s = 32767; s += 2; r += s;",
        [-32640, -32640, -32640, -32640, -32640, -32640, -32640, -32640],
    ),
    (
        "long",
        "",
        "long a = 1L << 40; r = a >> 3; r += (ulong)-1 >> 60; r ^= 0xffL;",
        [
            137438953712,
            137438953712,
            137438953712,
            137438953712,
            137438953712,
            137438953712,
            137438953712,
            137438953712,
        ],
    ),
    (
        "float",
        "",
        "float a = 1e30f; r = a * a > 1e38f ? INFINITY : 0; r = isinf(r) + NAN == NAN;",
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ),
    (
        "float",
        "__constant int T[] = {3, 1, 2};",
        "for (int i = 0; i < (int)(sizeof(T) / sizeof(*T)); i++) r += T[i] * x[i];",
        [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0],
    ),
    (
        "int",
        "enum E { P = 1 << 3, Q, R_ = P | 1 };",
        "enum E e = Q; r = e + R_ + (e == R_);",
        [19, 19, 19, 19, 19, 19, 19, 19],
    ),
    (
        "int",
        "",
        "r = ((int2)(1, 2) == (int2)(1, 3)).x + ((float2)(1) != (float2)(2)).y;",
        [-2, -2, -2, -2, -2, -2, -2, -2],
    ),
    (
        "int",
        "",
        "int2 v = {1, 2}; int2 w = v.yx; v += w * 2; v <<= 1; v %= 7; r = v.x * 10 + v.y;",
        [31, 31, 31, 31, 31, 31, 31, 31],
    ),
    (
        "float",
        "",
        "double d = x[g]; d = d / 3 * 3; float f = d; r = f + (float)1e-3 + convert_float(2.5);",
        [
            3.000999927520752,
            4.000999927520752,
            5.000999927520752,
            6.000999927520752,
            7.000999927520752,
            8.000999450683594,
            9.000999450683594,
            10.000999450683594,
        ],
    ),
    ("int", "", "r = (g > 2 && g < 6) || g == 7 ? g ? 1 : 2 : 3;", [3, 3, 3, 1, 1, 1, 3, 1]),
    (
        "int",
        "",
        "int s = 0; for (int i = 0; i < 10; i++) { switch (i % 3) { case 0: continue; case 1: s "
        "+= 1; break; default: s += 10; } if (s > g * 5) break; } r = s;",
        [1, 11, 11, 22, 22, 33, 33, 33],
    ),
    (
        "int",
        "",
        "for (int i = 0; i < 3; i++) { for (int j = 0; ; j++) { if (j > g) goto next; r += j; } "
        "next: ; }",
        [0, 3, 9, 18, 30, 45, 63, 84],
    ),
    (
        "int",
        "",
        "int i = 0; loop: if (i < 3) { r += i; i++; goto loop; } else goto done; r = 100; done: r "
        "+= 1;",
        [4, 4, 4, 4, 4, 4, 4, 4],
    ),
    (
        "int",
        "int f(int a);\nint f(int a) { return a * 2; }",
        "r = f(f(g));",
        [0, 4, 8, 12, 16, 20, 24, 28],
    ),
    (
        "int",
        "",
        "ushort4 v = (ushort4)(1, 2, 3, 65535); v += (ushort)1; r = v.w + v.x;",
        [2, 2, 2, 2, 2, 2, 2, 2],
    ),
    (
        "int",
        "",
        "r = popcount((uchar)255) + clz((short)1) + clz(1L) + (int)mul_hi(0xffffffffu, 2u) + "
        "(int)(mul_hi(1UL << 63, 4UL));",
        [89, 89, 89, 89, 89, 89, 89, 89],
    ),
    (
        "int",
        "",
        "int4 v = (int4)(1, -1, 5, 9); v = v > 2 ? v : -v; r = v.x + v.y + v.z; v = max(v, 0); v "
        "= select(v, (int4)(7), v == 0); r += v.w;",
        [14, 14, 14, 14, 14, 14, 14, 14],
    ),
    (
        "float",
        "",
        "float2 v = (float2)(x[g], -x[g]); v = fabs(v) + floor(v) + sqrt(fabs(v)); r = v.x - v.y;",
        [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0],
    ),
    (
        "float",
        "",
        "r = pow(2.0f, 3.0f) + exp(0.0f) + log2(8.0f) + atan2(0.0f, 1.0f) + tanh(0.0f) + "
        "cbrt(27.0f) + native_recip(4.0f) + rsqrt(4.0f);",
        [15.75, 15.75, 15.75, 15.75, 15.75, 15.75, 15.75, 15.75],
    ),
    (
        "int",
        "",
        "global const int *p = y; local float *q = l; private int k = 3; r = p[g] + k; q[g] = 1;",
        [0, 1, 2, 3, 4, 5, 6, 7],
    ),
    (
        "int",
        "",
        "__local int s[8]; s[g] = g; barrier(CLK_LOCAL_MEM_FENCE); for (int o = 4; o > 0; o >>= "
        "1) { if (g < o) s[g] += s[g + o]; barrier(CLK_LOCAL_MEM_FENCE); } r = s[0];",
        [28, 28, 28, 28, 28, 28, 28, 28],
    ),
    (
        "int",
        "",
        "__local float4 t[4]; ((__local float*)t)[g] = x[g]; ((__local float*)t)[g + 8] = 1; "
        "barrier(CLK_LOCAL_MEM_FENCE); r = t[1].y + t[3].w;",
        [6, 6, 6, 6, 6, 6, 6, 6],
    ),
    (
        "float",
        "",
        "union { float f[4]; float4 v; } u; u.v = (float4)(1, 2, 3, x[g]); r = u.f[3] + u.f[1];",
        [2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5],
    ),
    (
        "int",
        "#define M(x, ...) (x + sum(__VA_ARGS__))\nint sum(int a, int b) { return a + b; }",
        "r = M(1, 2, 3);",
        [6, 6, 6, 6, 6, 6, 6, 6],
    ),
    (
        "int",
        "#define S(x) #x\n#define STR(x) S(x)\n#define V 12",
        'r = sizeof(STR(V)) + sizeof(S(V + "a"));',
        [11, 11, 11, 11, 11, 11, 11, 11],
    ),
    (
        "int",
        "",
        "const int2 k[2] = {(int2)(1, 2), (int2)(3, 4)}; r = k[g & 1].y;",
        [2, 4, 2, 4, 2, 4, 2, 4],
    ),
    (
        "int",
        "",
        "int a[2][2][2]; int *p = &a[0][0][0]; for (int i = 0; i < 8; i++) p[i] = i; r = "
        "a[1][0][1] + (&a[1] - a);",
        [6, 6, 6, 6, 6, 6, 6, 6],
    ),
    ("long", "", "r = (long)(y + g) - (long)y; r += sizeof(y);", [8, 12, 16, 20, 24, 28, 32, 36]),
    (
        "int",
        "",
        "float f = -0.0f; r = as_int(f) < 0; r += signbit(f); r += (f == 0.0f) * 4;",
        [6, 6, 6, 6, 6, 6, 6, 6],
    ),
    (
        "int",
        "",
        "r = convert_int_sat(3e9f) == INT_MAX; r += convert_uchar_sat_rte(2.5f) + "
        "convert_short(-3.7f); r += convert_long(7.9);",
        [7, 7, 7, 7, 7, 7, 7, 7],
    ),
    (
        "float",
        "",
        "float3 a = (float3)(1, 2, 3); float3 b = a.zyx; float4 c = (float4)(a, 4); r = b.x + c.w "
        "+ length(a.xy) + sizeof(a);",
        [
            25.236068725585938,
            25.236068725585938,
            25.236068725585938,
            25.236068725585938,
            25.236068725585938,
            25.236068725585938,
            25.236068725585938,
            25.236068725585938,
        ],
    ),
    (
        "int",
        "",
        "r = as_char4(0x01020304).x + as_uint((float)g) / 1000000; r += as_ushort2(1.0f).y; r+= "
        "as_int4((float4)(1)).w >> 24;",
        [16323, 17388, 17396, 17400, 17405, 17407, 17409, 17411],
    ),
    ("int", "int f(void) { return 4; }", "r = f();", [4, 4, 4, 4, 4, 4, 4, 4]),
    (
        "int",
        "",
        "if (g > 3) { r = 1; return; } r = 2; out[g] = 5; return;",
        [5, 5, 5, 5, 0, 0, 0, 0],
    ),
    (
        "int",
        "",
        "int n = 3; while (n --> 0) r += n; do r--; while (r > 2);",
        [2, 2, 2, 2, 2, 2, 2, 2],
    ),
    (
        "int",
        "",
        "int x2 = 1, *p2 = &x2; { int x2 = 5; r = x2; } r += *p2; p2[0] = g; r += x2;",
        [6, 7, 8, 9, 10, 11, 12, 13],
    ),
    ("int", "kernel void k2(global int *a) { a[0] = 1; }", "r = 3;", [3, 3, 3, 3, 3, 3, 3, 3]),
    ("int", "", 'printf("%d\\n", g); r = 1;', [1, 1, 1, 1, 1, 1, 1, 1]),
    (
        "float",
        "",
        "float a = 3; a -= 1; a *= x[g]; a /= 2; r = a; int i = 7; i /= 2; i *= 1.5f; r += i;",
        [4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5],
    ),
    (
        "int",
        "",
        "int i = 5; i += 2.7f; char c = 3; c *= 100; uint u = 1; u -= 2; r = i + c + (u > 5);",
        [52, 52, 52, 52, 52, 52, 52, 52],
    ),
    ("int", "", "bool b = g; b += 1; r = b + (bool)0.1f + !!g;", [2, 3, 3, 3, 3, 3, 3, 3]),
    ("int", "", "r = g[y] + 1; r += (y + 1)[g & 3];", [-4, -2, 0, 2, 0, 2, 4, 6]),
    (
        "int",
        "",
        "ulong u = 0xFFFFFFFFFFFFFFFFul; r = u > 1; r += (u / 2 > 5) * 2; r += (int)(u % 7); r += "
        "(int)min(u, 3ul); r += (uint)(u >> 32) == 0xffffffffu;",
        [8, 8, 8, 8, 8, 8, 8, 8],
    ),
    (
        "int",
        "",
        "long a = -7; r = a / 2 + a % 3 + (a >> 1); int2 v = (int2)(-7, 7) / 2; r += v.x * 10 + "
        "v.y;",
        [-35, -35, -35, -35, -35, -35, -35, -35],
    ),
]

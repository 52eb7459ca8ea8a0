parts = """
#define BIG(x) as_float((as_uint(x) + 0x8000u) & 0xffff0000u)
#define MIDDLE(x) BIG((x) - BIG(x))
#define SMALL(x) BIG((x) - BIG(x) - MIDDLE(x))
"""
added = (
    "SMALL(a)*BIG(b) + MIDDLE(a)*MIDDLE(b) + BIG(a)*SMALL(b) + MIDDLE(a)*BIG(b) + BIG(a)*MIDDLE(b) "
    "+ BIG(a)*BIG(b)"
)
checks.check_18_3((parts, added))

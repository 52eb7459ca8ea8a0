def tree(parts):
    while len(parts) > 1:
        waiting = parts[-1:] if len(parts) % 2 else []
        parts = [x + y for x, y in zip(parts[::2], parts[1::2], strict=False)] + waiting
    return parts[0]


checks.check_20_3(tree)

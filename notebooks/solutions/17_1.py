def pieces_of(group, groups, tiles, steps):
    line = tiles * steps
    step, end = line * group // groups, line * (group + 1) // groups
    found = []
    while step < end:
        count = min(end - step, steps - step % steps)
        found.append((step // steps, step % steps, count))
        step += count
    return found


checks.check_17_1(pieces_of)

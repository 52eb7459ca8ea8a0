def search(rate, choices):
    best = {name: values[-1] for name, values in choices.items()}
    for name, values in choices.items():
        best[name] = max(values, key=lambda value: rate({**best, name: value}))
    return best


checks.check_04_3(search)

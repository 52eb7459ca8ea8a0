def store(c):
    lines = writer.store(c)
    return [
        line.replace("= ", "= fmax(").replace(";", ", 0.0f);") if line.strip().startswith("C[") else line
        for line in lines
    ]


checks.check_14_2(store)

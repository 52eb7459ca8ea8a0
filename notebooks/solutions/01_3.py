row = "const int m = get_group_id(0)*TS + get_local_id(1);"
column = "const int n = get_group_id(1)*TS + get_local_id(0);"
mine = text.replace("const int m = get_global_id(0);", row)
mine = mine.replace("const int n = get_global_id(1);", column)
checks.check_01_3(mine)

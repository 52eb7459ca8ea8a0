row = "const int m = get_group_id(0)*TS + get_local_id(1);"
column = "const int n = get_group_id(1)*TS + get_local_id(0);"
body = text.replace("const int m = get_group_id(0)*TS + get_local_id(0);", row)
mine = body.replace("const int n = get_group_id(1)*TS + get_local_id(1);", column)
checks.check_01_3(mine)

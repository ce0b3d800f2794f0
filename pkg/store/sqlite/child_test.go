package sqlite_test

func runChild() {}

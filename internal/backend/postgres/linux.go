package postgres

import "runtime"

const isLinux = runtime.GOOS == "linux"

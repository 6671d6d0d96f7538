package netdrop

import _ "github.com/google/nftables"

// Package redis holds the recipes that build a lock on Redis, or on a server
// that speaks its protocol and runs Lua scripts (Valkey).
//
// Each recipe has a file of its own, which reads like its description;
// driver.go says how the driver is set up and which of its errors mean what,
// server.go how requests are sent, sentinels.go how the master of a replicated
// Redis is found, and token.go also holds what the recipes with a token share.
//
// It may import impls and the driver, nothing else of lockbench.
package redis

// Package redis holds the recipes that build a lock on Redis, or on another server
// with its protocol and Lua scripts (Valkey).
//
// Each recipe is one file. driver.go has the catalogue of recipes, the driver's
// options and its table of errors; server.go sends requests; sentinels.go finds
// the master of a replicated Redis; token.go also has what all recipes with a
// token share.
//
// The package may import impls and the driver, and no other package of lockbench.
package redis

// Package redis describes redis and Valkey servers: one, a master with replicas
// and sentinels, or independent masters of which clients ask a majority.
//
// Settings are the server's own names; those of sentinels begin with "sentinel ".
// Counters are the commands of commandstats ("set", "evalsha"). Commands that a
// script calls are counted under their own names too, and so are the "ping" and
// "publish" of replicas and sentinels.
package redis

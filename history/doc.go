// Package history is the record of what clients did: every call with its
// invoke and return on one monotonic clock, and its outcome, where "unknown"
// is an outcome like the others.
//
// It holds the record types (Call), the clock (Clock), the crash-safe writer
// (Writer, one memory-mapped file per client), the merge of those files into
// one (Merge), the reader (Read), which reports what it could not read instead of
// guessing, and the export as JSON lines (WriteJSONL, ReadJSONL) and as EDN, as
// Jepsen writes histories (WriteEDN, ReadEDN). A history larger than memory is
// read key by key (ReadKeyed), and one that was made in memory is written by
// Save. A Follower reads streams while they are written.
//
// It may import the standard library, golang.org/x and a compression library only:
// everything else in lockbench stands above it.
//
// # What a history survives
//
// The death of a process at any instruction: the invoke of a call is in the
// kernel's memory before Begin returns, so before the request is sent, and
// its return before End returns. Nothing needs to be flushed by the process.
// A full disk: space is reserved before it is written to, so that the lack of
// it is an error of Begin. (On a file system that cannot reserve, as those
// that write each change to a new place, it may still be a fault.) It does not
// survive a power cut: nothing is forced to the disk.
//
// # The format
//
// All numbers are little-endian. Stamps are nanoseconds of CLOCK_MONOTONIC (on
// macOS of CLOCK_UPTIME_RAW). Checksums are CRC-32C; where one would be 0 it is
// stored as 1, but for the content checksum of a frame. Fields not listed are
// zero.
//
// A client's file is a stream: a header of 128 bytes, then slots of 112 bytes,
// record n in slot n. Slots that were not yet used are zero.
//
//	header
//	  0  8  "LBSTREAM"
//	  8  4  version: 1; 2 for a stream that has parts or is compressed
//	 12  2  size of the header, 128
//	 14  2  size of a slot, 112
//	 16  4  client; 0xFFFFFFFF: the controller
//	 20  4  worker
//	 24  4  streams that the whole history should have; 0: not known
//	 28  4  flags; 1: sealed, 2: another part follows, 4: compressed
//	 32  8  uncertainty of the clock, ns
//	 40  8  stamp of the beginning
//	 48  8  size of the file in bytes, before compression: it is never shorter,
//	        and if it is longer (the writer died while it grew) then by zeros
//	 56  8  records of the stream, if sealed
//	 64  8  stamp of the seal, if sealed
//	 72  4  number of the first record of this part
//	124  4  checksum of bytes 0 to 123
//
//	slot, invoke half, written by Begin
//	  0  4  client
//	  4  4  sequence number, from 0
//	  8  4  key
//	 12  1  kind
//	 13  1  flags
//	 14  2  mark: 0x4B4C a call, 0x4B50 a point
//	 16 16  attempt
//	 32  8  stamp of the intended start
//	 40  8  stamp of the invoke
//	 48  8  fencing token presented
//	 56  8  argument
//	 64  4  checksum of bytes 0 to 63, written last
//
//	slot, return half, written by End
//	 68  1  outcome
//	 69  1  flags, added to those of the invoke
//	 70  2  mark: 0x5452
//	 72  8  stamp of the return
//	 80  8  fencing token granted or seen; 0: the one presented stands
//	 88  8  stamp of the lease's end
//	 96  8  value
//	108  4  checksum of bytes 68 to 107, begun from the invoke's checksum,
//	        written last
//
// A half whose checksum is 0 was not finished. At the end of a stream without
// a seal that is the trace of a kill, and the half does not count; elsewhere it
// is damage. A call that the client itself gave up (its next Begin came without
// an End) has a return half with outcome 0 and stamp 0. A point has both
// halves, the return half written first.
//
// A long stream is written in parts of 37449 records, a file each; only the last
// of them is written to. A part that is full is replaced by its compressed form
// while the client goes on: a header with that flag, then blocks instead of
// slots. Each block is compressed by itself, as a Zstandard frame without a
// checksum:
//
//	block
//	  0  8  "LBPACKED"
//	  8  4  bytes of slots, uncompressed
//	 12  4  bytes that follow, compressed
//	 16  4  checksum of the bytes that follow
//	 28  4  checksum of bytes 0 to 27
//
// A merged file is a row of streams, each after a frame of 64 bytes. The bytes
// of the client's file follow as they were, but for zeros after the last slot
// that is not blank. A stream of several parts, or of more than 256 KiB, follows
// as one compressed stream, whose content checksum is 0.
//
//	frame
//	  0  8  "LBMERGED"
//	  8  4  version, 1
//	 12  4  number of the stream, from 0
//	 16  4  number of streams
//	 24  8  size of the client's file
//	 32  8  bytes that follow
//	 40  4  checksum of the bytes that follow
//	 60  4  checksum of bytes 0 to 59
//
// # JSON lines
//
// The export is text: one object a line. The first line names the format,
// a line for each stream follows, then one for each call, and a last one that
// has their number. A file without it was cut short:
//
//	{"format":"lockbench-history","version":1}
//	{"stream":{"client":0,"worker":0,"sealed":true,"sealed_at":900,"clock_uncertainty_ns":40}}
//	{"client":0,"seq":0,"kind":"acquire","outcome":"held","key":0,"attempt":"0f...","intended":10,"invoke":10,"return":20,"fence":1,"lease_end":500}
//	{"end":{"streams":1,"calls":1}}
//
// Damage has lines of its own, {"damage":{"file":..,"offset":..,"client":..,"what":..}},
// so that an export never looks better than its source. Kinds, outcomes and
// flags are words. Fields that are 0 or empty may be left out, but for client,
// seq, kind and invoke; the stamp of a return that was not seen is left out, and
// an outcome left out is open. Stamps are nanoseconds on one clock, above 0.
// Unknown fields are an error, so that a misspelt one is not taken for 0.
//
// A file that does not begin with that first line comes from another program,
// and less is required: no streams and no end (then it is not noticed if the file
// was cut short), clients and keys may be names, stamps may be dates as RFC 3339
// writes them, calls need no seq (they count as they come), an attempt may be
// any text that is unique to it, and where it is left out a release, renewal or
// loss belongs to the client's last acquire of the key that is not over, and is
// flagged as inferred. The objects may also be those of one array. The kinds may also be
// called lock, try-lock, unlock and renew, and "ok" is the outcome of a call that
// did what it is for.
//
// # EDN
//
// A history as Jepsen writes it: a map for each operation's beginning and one for
// its end, each on its own or all in one vector. Read are:
//
//	:process  a number: the client; anything else (:nemesis) is passed over
//	:type     :invoke, then :ok, :fail or :info. A failure had no effect; :info
//	          is unknown, and so is an invoke that nothing ends
//	:f        :acquire or :lock, :try, :release or :unlock, :extend or :renew,
//	          :cleanup; :lost, which needs no invoke: the client learned that
//	          its lock was gone
//	:time     nanoseconds; without it the order of the operations counts, and
//	          lengths mean nothing
//	:key      which lock: numbers, or words or texts; or the first of a :value
//	          [key value]; without either all is about one lock
//	:value    of an acquire that is :ok and began with nil: the fencing token
//	:error    of a :fail: :lost (or :not-held, :not-owner) if the lock said that it
//	          was no longer the client's, :busy (or :held) if it was another's
//	:attempt  32 hexadecimal digits, where a release is not of the client's last
//	          acquire of the key
//
// Our own export adds :client, :seq, :intended, :flags, :fence, :arg,
// :lease-end, :seen and :outcome, and writes streams, damage and the end as
// operations of the process :lockbench, so that it reads back unchanged. After a
// call with an unknown outcome the client goes on as another process, as in
// Jepsen.
package history

// Package external reads the file that describes servers of the user's: their
// addresses, TLS and logins. Secrets come from files and environment variables
// that it names, and are kept nowhere else.
//
// It may import impls and the standard library, and a YAML library.
package external

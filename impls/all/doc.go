// Package all is the catalogue: the one place that names every recipe of
// lockbench. Nothing else needs to know the packages that they live in.
//
// It may import impls and the packages below it.
package all

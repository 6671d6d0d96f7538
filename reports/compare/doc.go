// Package compare compares two runs: what changed in safety, and which changes
// of speed are more than chance.
//
// A change of speed counts if a Mann-Whitney U test over the repeats finds it,
// and if the medians differ by at least the smallest change. Many tests find
// something by chance, so all tests of a comparison share one error: Holm's
// method keeps the chance of any false alarm below Alpha. With 0.002 even twenty
// comparisons of the same code raise an alarm with a chance of 4 % at most. The
// test knows nothing of a machine that was slower as a whole during one of the
// runs. The smallest change is there for that, and a change that is smaller than
// the spread of a run's repeats is not decided.
package compare

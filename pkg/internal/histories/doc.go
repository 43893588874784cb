// Package histories holds the property test of what is promised of registrar and
// resync together: whatever happens to pods, rules, target groups, messages and
// programs, in any order, nothing claimed is taken out meanwhile, and after the
// last fault and a round the groups hold what is claimed.
package histories

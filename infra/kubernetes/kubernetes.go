// Package kubernetes holds what elbridge needs inside a cluster beside the
// webhook itself: the rights of its parts.
package kubernetes

import _ "embed"

// RBAC is the manifest with the roles of webhook and functions and whom they are
// bound to.
//
//go:embed rbac.yaml
var RBAC []byte

package core

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Principal is who signs with an access key.
type Principal struct {
	AccessKeyID     string `json:"accessKeyId"`
	SecretAccessKey string `json:"secretAccessKey"`
	SessionToken    string `json:"sessionToken,omitempty"` // of temporary credentials
	Account         string `json:"account"`
	// ARN is what GetCallerIdentity says: of a user, or of a role's session
	// (arn:aws:sts::account:assumed-role/role/session).
	ARN    string `json:"arn"`
	UserID string `json:"userId,omitempty"`
	// Expires ends temporary credentials; zero means never.
	Expires time.Time `json:"expires,omitzero"`
}

// Principals knows every access key.
type Principals struct {
	mu  sync.RWMutex
	key map[string]Principal
}

// NewPrincipals returns a set with the given principals.
func NewPrincipals(all ...Principal) (*Principals, error) {
	p := &Principals{key: map[string]Principal{}}
	for _, one := range all {
		if err := p.Add(one); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Add makes an access key known, or replaces what is known of it.
func (p *Principals) Add(one Principal) error {
	if one.AccessKeyID == "" || one.SecretAccessKey == "" || len(one.Account) != 12 || one.ARN == "" {
		return fmt.Errorf("principal %q: want an access key, a secret, an account of 12 digits and an ARN, got account %q and ARN %q",
			one.AccessKeyID, one.Account, one.ARN)
	}
	if one.UserID == "" {
		one.UserID = userID(one)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key[one.AccessKeyID] = one
	return nil
}

// Remove forgets an access key.
func (p *Principals) Remove(accessKeyID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.key, accessKeyID)
}

// Find returns the principal of an access key.
func (p *Principals) Find(accessKeyID string) (Principal, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	one, ok := p.key[accessKeyID]
	return one, ok
}

// userID makes up a unique id of the form that the kind of principal has.
func userID(p Principal) string {
	if _, role, ok := strings.Cut(p.ARN, ":assumed-role/"); ok {
		name, session, _ := strings.Cut(role, "/")
		return RoleID(p.Account, name) + ":" + session
	}
	return uniqueID("AIDA", p.ARN)
}

// RoleID is the unique id of a role: the same for all its sessions, which have
// ":session" after it. SQS gives that as SenderId.
func RoleID(account, name string) string { return uniqueID("AROA", account+"/"+name) }

// uniqueID is a kind of id and 17 capital letters and digits.
func uniqueID(kind, of string) string {
	sum := sha256.Sum256([]byte(of))
	return kind + base32.StdEncoding.EncodeToString(sum[:])[:17]
}

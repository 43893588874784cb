// Package sts is the local cloud's STS: GetCallerIdentity, and AssumeRole for
// the roles it was told of. The signature has been checked by the core, so
// that an answer from GetCallerIdentity proves who asked, also by a presigned
// URL and with signed headers such as x-k8s-aws-id.
package sts

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// Role is a role that may be assumed.
type Role struct {
	ARN        string `json:"arn"` // arn:aws:iam::account:role/name
	ExternalID string `json:"externalId,omitempty"`
	// Trusted lists ARNs or accounts that may assume the role; empty means the
	// role's own account.
	Trusted []string `json:"trusted,omitempty"`
}

// Service is STS.
type Service struct {
	clock      core.Clock // of the expiry of credentials: the signatures' clock
	principals *core.Principals
	mu         sync.RWMutex
	roles      map[string]Role
}

// New returns a service that makes temporary principals known.
func New(clock core.Clock, principals *core.Principals) *Service {
	return &Service{clock: clock, principals: principals, roles: map[string]Role{}}
}

// AddRole makes a role known.
func (s *Service) AddRole(r Role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[r.ARN] = r
}

// ServeAWS implements core.Service.
func (s *Service) ServeAWS(_ context.Context, call *core.Call) (any, error) {
	switch call.Operation {
	case "GetCallerIdentity":
		return identity{UserID: call.Principal.UserID, Account: call.Principal.Account, ARN: call.Principal.ARN}, nil
	case "AssumeRole":
		return s.assumeRole(call)
	}
	return nil, call.UnknownOperation()
}

type identity struct {
	ARN     string `xml:"Arn" json:"Arn"`
	UserID  string `xml:"UserId" json:"UserId"`
	Account string `xml:"Account" json:"Account"`
}

type assumed struct {
	Credentials struct {
		AccessKeyID     string `xml:"AccessKeyId"`
		SecretAccessKey string
		SessionToken    string
		Expiration      string
	}
	AssumedRoleUser struct {
		ID  string `xml:"AssumedRoleId"`
		ARN string `xml:"Arn"`
	}
}

var sessionForm = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)

func (s *Service) assumeRole(call *core.Call) (any, error) {
	arn, session := call.Params.Get("RoleArn"), call.Params.Get("RoleSessionName")
	if !sessionForm.MatchString(session) {
		return nil, core.Errorf("ValidationError", "1 validation error detected: Value '%s' at 'roleSessionName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\\w+=,.@-]*, length 2 to 64", session)
	}
	seconds, err := call.Params.Int("DurationSeconds")
	if err != nil {
		return nil, err
	}
	duration := time.Hour
	if seconds != nil {
		duration = time.Duration(*seconds) * time.Second
	}
	if duration < 15*time.Minute || duration > 12*time.Hour {
		return nil, core.Errorf("ValidationError", "1 validation error detected: Value '%d' at 'durationSeconds' failed to satisfy constraint: Member must be between 900 and 43200", *seconds)
	}
	s.mu.RLock()
	role, ok := s.roles[arn]
	s.mu.RUnlock()
	if !ok || !role.trusts(call.Principal) || role.ExternalID != "" && role.ExternalID != call.Params.Get("ExternalId") {
		return nil, &core.Error{Code: "AccessDenied", Status: http.StatusForbidden,
			Message: "User: " + call.Principal.ARN + " is not authorized to perform: sts:AssumeRole on resource: " + arn}
	}
	return s.issue(role, session, duration)
}

func (r Role) trusts(p core.Principal) bool {
	if len(r.Trusted) == 0 {
		return p.Account == account(r.ARN)
	}
	return slices.Contains(r.Trusted, p.Account) || slices.Contains(r.Trusted, p.ARN)
}

func account(arn string) string {
	if p := strings.Split(arn, ":"); len(p) > 4 {
		return p[4]
	}
	return ""
}

// issue makes temporary credentials.
func (s *Service) issue(role Role, session string, lifetime time.Duration) (any, error) {
	name := role.ARN[strings.LastIndex(role.ARN, "/")+1:]
	p := core.Principal{AccessKeyID: "ASIA" + text(10), SecretAccessKey: text(25), SessionToken: text(100), Account: account(role.ARN),
		Expires: s.clock.Now().Add(lifetime).Truncate(time.Second)}
	p.ARN = "arn:aws:sts::" + p.Account + ":assumed-role/" + name + "/" + session
	p.UserID = core.RoleID(p.Account, name) + ":" + session
	if err := s.principals.Add(p); err != nil {
		return nil, err
	}
	var out assumed
	out.Credentials.AccessKeyID, out.Credentials.SecretAccessKey = p.AccessKeyID, p.SecretAccessKey
	out.Credentials.SessionToken, out.Credentials.Expiration = p.SessionToken, p.Expires.UTC().Format(time.RFC3339)
	out.AssumedRoleUser.ID, out.AssumedRoleUser.ARN = p.UserID, p.ARN
	return out, nil
}

// text returns n random bytes as capital letters and digits.
func text(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return strings.TrimRight(base32.StdEncoding.EncodeToString(b), "=")
}

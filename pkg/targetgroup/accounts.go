package targetgroup

import (
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/elbridge/elbridge/pkg/binding"
)

// Accounts makes clients, one for each role and region that a binding's target
// group lives under.
type Accounts struct {
	AWS aws.Config

	mu      sync.Mutex
	clients map[account]*Client
}

type account struct{ role, externalID, region string }

// maxAccounts bounds the clients kept; 5 targets a rule and 300 rules a bus are
// the service's own quotas, and one role for each is far more than anyone has.
const maxAccounts = 1500

// For returns the client for a binding: by its role, if it has one, and in its
// group's region.
func (a *Accounts) For(b *binding.Binding) *Client {
	key := account{role: b.RoleARN, externalID: b.ExternalID, region: region(b.Group.ARN)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[key]; ok {
		return c
	}
	cfg := a.AWS.Copy()
	if key.region != "" {
		cfg.Region = key.region
	}
	if key.role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), key.role, func(o *stscreds.AssumeRoleOptions) {
			if key.externalID != "" {
				o.ExternalID = &key.externalID
			}
		}))
	}
	if a.clients == nil || len(a.clients) >= maxAccounts {
		a.clients = map[account]*Client{}
	}
	c := New(elb.NewFromConfig(cfg))
	a.clients[key] = c
	return c
}

// region is the region in an ARN, or "".
func region(arn string) string {
	if parts := strings.Split(arn, ":"); len(parts) > 3 {
		return parts[3]
	}
	return ""
}

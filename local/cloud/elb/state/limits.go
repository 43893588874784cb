package state

// Limits are the service quotas, with the defaults of an AWS account. Targets
// that drain don't count.
type Limits struct {
	TargetGroups             int // in an account and region
	TargetsPerGroup          int
	TargetsPerALB            int
	TargetsPerNLB            int
	TargetsPerZoneNLB        int
	GroupsPerALB             int
	GroupsPerAction          int
	RegistrationsPerTargetID int // of one id with one application load balancer
	Balancers                int // of each kind in an account and region
	ListenersPerBalancer     int
	TagsPerResource          int
}

// DefaultLimits are what a new account has.
func DefaultLimits() Limits {
	return Limits{
		TargetGroups:             3000,
		TargetsPerGroup:          1000,
		TargetsPerALB:            1000,
		TargetsPerNLB:            3000,
		TargetsPerZoneNLB:        500,
		GroupsPerALB:             100,
		GroupsPerAction:          5,
		RegistrationsPerTargetID: 1000,
		Balancers:                50,
		ListenersPerBalancer:     50,
		TagsPerResource:          50,
	}
}

// Limit is a quota by the name that DescribeAccountLimits gives it.
type Limit struct {
	Name string
	Max  int
}

// List returns the quotas in the order of their names.
func (l Limits) List() []Limit {
	return []Limit{
		{"application-load-balancers", l.Balancers},
		{"listeners-per-application-load-balancer", l.ListenersPerBalancer},
		{"listeners-per-network-load-balancer", l.ListenersPerBalancer},
		{"network-load-balancers", l.Balancers},
		{"target-groups", l.TargetGroups},
		{"target-groups-per-action-on-application-load-balancer", l.GroupsPerAction},
		{"target-groups-per-application-load-balancer", l.GroupsPerALB},
		{"target-id-registrations-per-application-load-balancer", l.RegistrationsPerTargetID},
		{"targets-per-application-load-balancer", l.TargetsPerALB},
		{"targets-per-availability-zone-per-network-load-balancer", l.TargetsPerZoneNLB},
		{"targets-per-network-load-balancer", l.TargetsPerNLB},
		{"targets-per-target-group", l.TargetsPerGroup},
	}
}

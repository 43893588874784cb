package node

import (
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/local/node/internal/address"
)

// kubeletVersion is what the nodes say they run.
const kubeletVersion = "v1.37.2"

func capacity(s Spec) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:              resource.MustParse("1000"),
		v1.ResourceMemory:           resource.MustParse("4Ti"),
		v1.ResourceEphemeralStorage: resource.MustParse("4Ti"),
		v1.ResourcePods:             *resource.NewQuantity(s.Pods, resource.DecimalSI),
	}
}

// nodeObject is what a kubelet on EC2 would register.
func nodeObject(s Spec, now time.Time) *v1.Node {
	region := s.Zone
	if len(region) > 1 {
		region = region[:len(region)-1]
	}
	return &v1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name,
			Labels: map[string]string{
				v1.LabelHostname:           s.Name,
				v1.LabelTopologyZone:       s.Zone,
				v1.LabelTopologyRegion:     region,
				v1.LabelOSStable:           "linux",
				v1.LabelArchStable:         runtime.GOARCH,
				v1.LabelInstanceTypeStable: "m7g.large",
				"topology.k8s.aws/zone-id": s.ZoneID,
			},
		},
		Spec:   v1.NodeSpec{ProviderID: s.ProviderID},
		Status: nodeStatus(s, now, now),
	}
}

// nodeStatus is a healthy node's. since is when it became healthy.
func nodeStatus(s Spec, since, now time.Time) v1.NodeStatus {
	c := capacity(s)
	return v1.NodeStatus{
		Capacity:    c,
		Allocatable: c,
		Addresses: []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: s.Address.String()},
			{Type: v1.NodeInternalIP, Address: address.Second(s.Address).String()},
			{Type: v1.NodeHostName, Address: s.Name},
			{Type: v1.NodeInternalDNS, Address: fmt.Sprintf("%s.%s.compute.internal", s.Name, s.Zone)},
		},
		NodeInfo: v1.NodeSystemInfo{
			MachineID: s.Name, SystemUUID: s.Name, BootID: s.Name,
			KernelVersion: "6.1.0", OSImage: "elbridge local node", ContainerRuntimeVersion: "elbridge://1.0.0",
			KubeletVersion: kubeletVersion, OperatingSystem: "linux", Architecture: runtime.GOARCH,
		},
		Conditions: []v1.NodeCondition{
			condition(v1.NodeMemoryPressure, v1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available", since, now),
			condition(v1.NodeDiskPressure, v1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure", since, now),
			condition(v1.NodePIDPressure, v1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available", since, now),
			condition(v1.NodeReady, v1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", since, now),
		},
	}
}

// nodeStatusPatch is a strategic merge patch. Addresses are replaced as a whole:
// their merge key is the type, and there are two of one.
func nodeStatusPatch(s v1.NodeStatus) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	addresses := []any{map[string]string{"$patch": "replace"}}
	for _, a := range s.Addresses {
		addresses = append(addresses, a)
	}
	fields["addresses"] = addresses
	return json.Marshal(map[string]any{"status": fields})
}

func condition(kind v1.NodeConditionType, status v1.ConditionStatus, reason, message string, since, now time.Time) v1.NodeCondition {
	return v1.NodeCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
		LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(since),
	}
}

package cluster

import "google.golang.org/protobuf/encoding/protowire"

// Numbers of the fields that are read, by message: generated.proto of
// k8s.io/api/core/v1, and of k8s.io/apimachinery's pkg/apis/meta/v1 and
// pkg/runtime, 0.37.2. A number is for ever: a field that is given up keeps its own.
const (
	// k8s.io.apimachinery.pkg.runtime
	typeMetaAPIVersion protowire.Number = 1
	typeMetaKind       protowire.Number = 2
	unknownTypeMeta    protowire.Number = 1
	unknownRaw         protowire.Number = 2
	rawExtensionRaw    protowire.Number = 1

	// k8s.io.apimachinery.pkg.apis.meta.v1
	listMetaResourceVersion              protowire.Number = 2
	listMetaContinue                     protowire.Number = 3
	objectMetaName                       protowire.Number = 1
	objectMetaNamespace                  protowire.Number = 3
	objectMetaUID                        protowire.Number = 5
	objectMetaResourceVersion            protowire.Number = 6
	objectMetaDeletionTimestamp          protowire.Number = 9
	objectMetaDeletionGracePeriodSeconds protowire.Number = 10
	objectMetaLabels                     protowire.Number = 11
	objectMetaAnnotations                protowire.Number = 12
	objectMetaOwnerReferences            protowire.Number = 13
	ownerReferenceKind                   protowire.Number = 1
	ownerReferenceName                   protowire.Number = 3
	ownerReferenceController             protowire.Number = 6
	watchEventType                       protowire.Number = 1
	watchEventObject                     protowire.Number = 2

	// k8s.io.api.core.v1
	podListMetadata                      protowire.Number = 1
	podListItems                         protowire.Number = 2
	podMetadata                          protowire.Number = 1
	podSpec                              protowire.Number = 2
	podStatus                            protowire.Number = 3
	podSpecContainers                    protowire.Number = 2
	podSpecTerminationGracePeriodSeconds protowire.Number = 4
	podSpecServiceAccountName            protowire.Number = 8
	podSpecNodeName                      protowire.Number = 10
	podSpecHostNetwork                   protowire.Number = 11
	podSpecInitContainers                protowire.Number = 20
	containerPorts                       protowire.Number = 6
	containerRestartPolicy               protowire.Number = 24
	containerPortName                    protowire.Number = 1
	containerPortHostPort                protowire.Number = 2
	containerPortContainerPort           protowire.Number = 3
	containerPortProtocol                protowire.Number = 4
	podStatusPhase                       protowire.Number = 1
	podStatusConditions                  protowire.Number = 2
	podStatusHostIP                      protowire.Number = 5
	podStatusPodIP                       protowire.Number = 6
	podStatusPodIPs                      protowire.Number = 12
	podConditionType                     protowire.Number = 1
	podConditionStatus                   protowire.Number = 2
	podIPIP                              protowire.Number = 1

	// The language guide of protobuf, "Maps": an entry is a message.
	entryKey   protowire.Number = 1
	entryValue protowire.Number = 2
)

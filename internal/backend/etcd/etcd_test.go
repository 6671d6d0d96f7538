package etcd

import "testing"

// Streams that end count as messages from etcd 3.6 on, and not before.
func TestEtcdMessages(t *testing.T) {
	page := func(version string) string {
		return `etcd_server_version{server_version="` + version + `"} 1
grpc_server_handled_total{grpc_code="Canceled",grpc_method="Watch",grpc_service="etcdserverpb.Watch",grpc_type="bidi_stream"} 1
grpc_server_handled_total{grpc_code="OK",grpc_method="LeaseKeepAlive",grpc_service="etcdserverpb.Lease",grpc_type="bidi_stream"} 2
grpc_server_handled_total{grpc_code="OK",grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 7
grpc_server_msg_received_total{grpc_method="LeaseKeepAlive",grpc_service="etcdserverpb.Lease",grpc_type="bidi_stream"} 12
grpc_server_msg_received_total{grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 7
grpc_server_msg_received_total{grpc_method="Watch",grpc_service="etcdserverpb.Watch",grpc_type="bidi_stream"} 1.2e+06
grpc_server_msg_received_total{grpc_method="Watch",grpc_service="grpc.health.v1.Health",grpc_type="server_stream"} 5
`
	}
	for version, want := range map[string]map[string]int64{
		"3.5.21": {"LeaseKeepAlive": 12, "Put": 7, "Watch": 1200000},
		"3.7.3":  {"LeaseKeepAlive": 10, "Put": 7, "Watch": 1199999},
	} {
		got, err := parseMessages(page(version))
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %v, %v", version, got, err)
		}
		for method, n := range want {
			if got[method] != n {
				t.Errorf("%s: %s %d, want %d", version, method, got[method], n)
			}
		}
	}
	if _, err := parseMessages("something_else 1\n"); err == nil {
		t.Error("a page without messages is read as none")
	}
}

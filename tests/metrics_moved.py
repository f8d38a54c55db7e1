"""Which test moves which metric. Every declared one is moved by a test (tests/unit/telemetry/test_moved.py)."""

import re
from collections.abc import Callable, Iterable

from ottla.testing.waiting import wait_until

_LINE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?P<labels>\{.*\})? (?P<value>\S+)$", re.MULTILINE)


def moved(before: str, after: str) -> set[str]:
    """Names of metrics of which a series has another value than before, or is new and not 0."""
    old = {(found["name"], found["labels"]): found["value"] for found in _LINE.finditer(before)}
    return {
        found["name"]
        for found in _LINE.finditer(after)
        if float(found["value"]) != float(old.get((found["name"], found["labels"]), 0))
    }


def wait_until_moved(names: Iterable[str], seen: Callable[[], set[str]]) -> None:
    """Wait until all of these are among those that were seen to move."""
    left = set(names)

    def done() -> bool:
        left.difference_update(seen())
        return not left

    try:
        wait_until(done, "they move", seconds=90)
    except AssertionError:
        raise AssertionError(f"these do not move: {sorted(left)}") from None


MOVED_BY: dict[str, tuple[str, ...]] = {
    "tests/server/test_metrics_move.py::test_one_broker": (
        "kafka_cluster_partition_atminisr",
        "kafka_cluster_partition_insyncreplicascount",
        "kafka_cluster_partition_replicascount",
        "kafka_consumergroup_current_offset",
        "kafka_consumergroup_current_offset_sum",
        "kafka_consumergroup_lag",
        "kafka_consumergroup_lag_sum",
        "kafka_consumergroup_members",
        "kafka_controller_controllereventmanager_eventqueueprocessingtimems",
        "kafka_controller_controllereventmanager_eventqueuetimems",
        "kafka_controller_kafkacontroller_globalpartitioncount",
        "kafka_controller_kafkacontroller_globaltopiccount",
        "kafka_log_log_logendoffset",
        "kafka_log_log_logstartoffset",
        "kafka_log_log_numlogsegments",
        "kafka_log_log_size",
        "kafka_log_logcleaner_cleaner_recopy_percent",
        "kafka_log_logcleaner_max_buffer_utilization_percent",
        "kafka_log_logcleaner_max_clean_time_secs",
        "kafka_log_logcleanermanager_max_dirty_percent",
        "kafka_log_logcleanermanager_time_since_last_run_ms",
        "kafka_log_logflushstats_logflushrateandtimems",
        "kafka_network_requestchannel_requestqueuesize",
        "kafka_network_requestmetrics_errors_total",
        "kafka_network_requestmetrics_localtimems",
        "kafka_network_requestmetrics_remotetimems",
        "kafka_network_requestmetrics_requestbytes",
        "kafka_network_requestmetrics_requestqueuetimems",
        "kafka_network_requestmetrics_requests_total",
        "kafka_network_requestmetrics_responsequeuetimems",
        "kafka_network_requestmetrics_responsesendtimems",
        "kafka_network_requestmetrics_throttletimems",
        "kafka_network_requestmetrics_totaltimems",
        "kafka_network_socketserver_memorypoolused",
        "kafka_network_socketserver_networkprocessoravgidlepercent",
        "kafka_server_addpartitionstotxnmanager_verificationtimems",
        "kafka_server_brokertopicmetrics_bytesin_total",
        "kafka_server_brokertopicmetrics_bytesout_total",
        "kafka_server_brokertopicmetrics_bytesrejected_total",
        "kafka_server_brokertopicmetrics_failedproducerequests_total",
        "kafka_server_brokertopicmetrics_invalidmagicnumberrecords_total",
        "kafka_server_brokertopicmetrics_invalidmessagecrcrecords_total",
        "kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords_total",
        "kafka_server_brokertopicmetrics_messagesin_total",
        "kafka_server_brokertopicmetrics_nokeycompactedtopicrecords_total",
        "kafka_server_brokertopicmetrics_producemessageconversions_total",
        "kafka_server_brokertopicmetrics_totalfetchrequests_total",
        "kafka_server_brokertopicmetrics_totalproducerequests_total",
        "kafka_server_clientmetrics_instancecount",
        "kafka_server_delayedoperationpurgatory_numdelayedoperations",
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "kafka_server_group_coordinator_metrics_classic_group_count",
        "kafka_server_group_coordinator_metrics_consumer_group_count",
        "kafka_server_group_coordinator_metrics_consumer_group_rebalance_count",
        "kafka_server_group_coordinator_metrics_consumer_group_rebalance_rate",
        "kafka_server_group_coordinator_metrics_group_completed_rebalance_count",
        "kafka_server_group_coordinator_metrics_group_completed_rebalance_rate",
        "kafka_server_group_coordinator_metrics_group_count",
        "kafka_server_group_coordinator_metrics_offset_commit_count",
        "kafka_server_group_coordinator_metrics_offset_commit_rate",
        "kafka_server_group_coordinator_metrics_offset_deletion_count",
        "kafka_server_groupmetadatamanager_numgroups",
        "kafka_server_groupmetadatamanager_numgroupscompletingrebalance",
        "kafka_server_groupmetadatamanager_numgroupsempty",
        "kafka_server_groupmetadatamanager_numgroupspreparingrebalance",
        "kafka_server_groupmetadatamanager_numgroupsstable",
        "kafka_server_groupmetadatamanager_numoffsets",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent",
        "kafka_server_kafkaserver_linux_disk_write_bytes",
        "kafka_server_replicamanager_atminisrpartitioncount",
        "kafka_server_replicamanager_leadercount",
        "kafka_server_replicamanager_partitioncount",
        "kafka_server_replicamanager_produceridcount",
        "kafka_server_socket_server_metrics_connection_close_rate",
        "kafka_server_socket_server_metrics_connection_close_total",
        "kafka_server_socket_server_metrics_connection_count",
        "kafka_server_socket_server_metrics_connection_creation_rate",
        "kafka_server_socket_server_metrics_connection_creation_total",
        "kafka_server_socket_server_metrics_incoming_byte_rate",
        "kafka_server_socket_server_metrics_incoming_byte_total",
        "kafka_server_socket_server_metrics_outgoing_byte_rate",
        "kafka_server_socket_server_metrics_outgoing_byte_total",
        "kafka_topic_partition_current_offset",
        "kafka_topic_partition_in_sync_replica",
        "kafka_topic_partition_leader_is_preferred",
        "kafka_topic_partition_oldest_offset",
        "kafka_topic_partition_replicas",
        "kafka_topic_partitions",
        "ottla_host_cpu_seconds_total",
        "ottla_host_dirty_bytes",
        "ottla_host_disk_busy_seconds_total",
        "ottla_host_disk_read_bytes_total",
        "ottla_host_disk_written_bytes_total",
        "ottla_host_file_descriptors",
        "ottla_host_load1",
        "ottla_host_memory_available_bytes",
        "ottla_host_network_received_bytes_total",
        "ottla_host_network_sent_bytes_total",
        "ottla_host_page_cache_bytes",
        "ottla_log_directory_free_bytes",
        "ottla_loop_delay_ms",
        "ottla_transactions",
        "ottla_transactions_completed_total",
        "process_cpu_seconds_total",
        "process_open_fds",
        "process_resident_memory_bytes",
    ),
    "tests/cluster/test_metrics_move.py::test_a_broker_dies_and_partitions_move": (
        "kafka_broker_info",
        "kafka_brokers",
        "kafka_cluster_partition_underminisr",
        "kafka_cluster_partition_underreplicated",
        "kafka_controller_controllerstats_leaderelectionrateandtimems",
        "kafka_controller_kafkacontroller_activebrokercount",
        "kafka_controller_kafkacontroller_activecontrollercount",
        "kafka_controller_kafkacontroller_fencedbrokercount",
        "kafka_controller_kafkacontroller_newactivecontrollerscount",
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
        "kafka_server_brokertopicmetrics_reassignmentbytesin_total",
        "kafka_server_brokertopicmetrics_reassignmentbytesout_total",
        "kafka_server_brokertopicmetrics_replicationbytesin_total",
        "kafka_server_brokertopicmetrics_replicationbytesout_total",
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "kafka_server_kafkaserver_brokerstate",
        "kafka_server_kafkaserver_linux_disk_read_bytes",
        "kafka_server_replicamanager_isrexpands_total",
        "kafka_server_replicamanager_isrshrinks_total",
        "kafka_server_replicamanager_reassigningpartitions",
        "kafka_server_replicamanager_underminisrpartitioncount",
        "kafka_server_replicamanager_underreplicatedpartitions",
        "kafka_server_sessionexpirelistener_sessionstate",
        "kafka_server_sessionexpirelistener_zookeepersyncconnects_total",
        "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
        "ottla_host_memory_bytes",
        "ottla_log_directory_size_bytes",
        "ottla_metrics_left_out",
        "process_max_fds",
        "zookeeper_avgrequestlatency",
        "zookeeper_maxrequestlatency",
        "zookeeper_nodecount",
        "zookeeper_numaliveconnections",
        "zookeeper_up",
        "zookeeper_watchcount",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_a_disk_fails_and_a_log_cannot_be_cleaned": (
        "kafka_log_logcleanermanager_uncleanable_bytes",
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "kafka_log_logmanager_logdirectoryoffline",
        "kafka_log_logmanager_remaininglogstorecover",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_the_session_with_zookeeper": (
        "kafka_server_sessionexpirelistener_zookeeperauthfailures_total",
        "kafka_server_sessionexpirelistener_zookeeperdisconnects_total",
        "kafka_server_sessionexpirelistener_zookeeperexpires_total",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_connections_that_are_behind": (
        "kafka_network_requestchannel_responsequeuesize",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_connections_that_come_and_are_kept_waiting": (
        "kafka_server_socket_server_metrics_broker_connection_accept_rate",
        "kafka_server_socket_server_metrics_connection_accept_rate",
        "kafka_server_socket_server_metrics_connection_accept_throttle_time",
        "kafka_server_socket_server_metrics_connections",
        "kafka_server_socket_server_metrics_ip_connection_accept_rate",
        "kafka_server_socket_server_metrics_ip_connection_accept_throttle_time",
        "ottla_listener_blocked_seconds_total",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_a_fetch_session_that_gives_way": (
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_the_host": ("process_start_time_seconds",),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_coordinators_count": (
        "kafka_server_addpartitionstotxnmanager_verificationfailurerate",
        "kafka_server_group_coordinator_metrics_offset_expiration_count",
        "kafka_server_group_coordinator_metrics_partition_load_time_avg",
        "kafka_server_group_coordinator_metrics_partition_load_time_max",
        "kafka_server_transaction_coordinator_metrics_partition_load_time_avg",
        "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_reads_that_are_refused": (
        "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_a_session_that_was_not_renewed": (
        "kafka_network_socketserver_expiredconnectionskilledcount",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_clients_that_push": (
        "kafka_server_clientmetrics_plugin_error_count",
        "kafka_server_clientmetrics_plugin_export_count",
        "kafka_server_clientmetrics_plugin_export_time_avg",
        "kafka_server_clientmetrics_plugin_export_time_max",
        "kafka_server_clientmetrics_throttle_count",
        "kafka_server_clientmetrics_unknown_subscription_request_count",
        "ottla_client_metrics_dropped_total",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_rates_move_with_their_counters": (
        "kafka_network_acceptor_acceptorblockedpercent",
        "kafka_server_clientmetrics_plugin_error_rate",
        "kafka_server_clientmetrics_plugin_export_rate",
        "kafka_server_clientmetrics_throttle_rate",
        "kafka_server_clientmetrics_unknown_subscription_request_rate",
        "kafka_server_group_coordinator_metrics_offset_expiration_rate",
        "kafka_server_socket_server_metrics_failed_authentication_rate",
        "kafka_server_socket_server_metrics_failed_reauthentication_rate",
        "kafka_server_socket_server_metrics_successful_authentication_rate",
        "kafka_server_socket_server_metrics_successful_reauthentication_rate",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_what_servers_of_zookeeper_say_is_told": (
        "zookeeper_leaderuptime",
        "zookeeper_minrequestlatency",
        "zookeeper_outstandingrequests",
        "zookeeper_status_quorumsize",
    ),
    "tests/unit/broker/handlers/test_metrics_moves.py::test_a_whole_broker": (
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "kafka_controller_kafkacontroller_metadataerrorcount",
        "kafka_log_logmanager_offlinelogdirectorycount",
        "kafka_server_fetcherlagmetrics_consumerlag",
        "kafka_server_replicafetchermanager_failedpartitionscount",
        "kafka_server_replicafetchermanager_maxlag",
        "kafka_server_replicamanager_failedisrupdates_total",
        "kafka_server_replicamanager_offlinereplicacount",
        "kafka_topic_partition_under_replicated_partition",
    ),
    "tests/unit/broker/security/test_audit.py::test_what_settings_ask_for_is_what_is_written": (
        "kafka_server_auditlog_dropped_total",
    ),
    "tests/unit/broker/quotas/test_showing.py::test_metrics_move_with_what_is_used_and_with_waits": (
        "kafka_server_controllermutation_mutation_rate",
        "kafka_server_controllermutation_throttle_time",
        "kafka_server_controllermutation_tokens",
        "kafka_server_fetch_byte_rate",
        "kafka_server_fetch_throttle_time",
        "kafka_server_produce_byte_rate",
        "kafka_server_produce_throttle_time",
        "kafka_server_request_exempt_request_time",
        "kafka_server_request_request_time",
        "kafka_server_request_throttle_time",
    ),
    "tests/unit/broker/security/test_authenticators.py::test_a_login_sees_the_newest_password_and_is_counted": (
        "kafka_server_socket_server_metrics_failed_authentication_total",
        "kafka_server_socket_server_metrics_successful_authentication_total",
    ),
    "tests/unit/broker/security/test_authenticators.py::test_a_session_that_is_renewed_counts_apart_and_is_timed": (
        "kafka_server_socket_server_metrics_failed_reauthentication_total",
        "kafka_server_socket_server_metrics_reauthentication_latency_avg",
        "kafka_server_socket_server_metrics_reauthentication_latency_max",
        "kafka_server_socket_server_metrics_successful_authentication_no_reauth_total",
        "kafka_server_socket_server_metrics_successful_reauthentication_total",
    ),
}
"""The tests look these up themselves, and fail when one of them does not move."""

ONE_BROKER = MOVED_BY["tests/server/test_metrics_move.py::test_one_broker"]
CLUSTER = MOVED_BY["tests/cluster/test_metrics_move.py::test_a_broker_dies_and_partitions_move"]

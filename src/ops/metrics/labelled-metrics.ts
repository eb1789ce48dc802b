// labelled-metrics.ts: the metrics whose labels are not keys of a record: reasons, outcomes, states. Sources
// and reasons come from the config and from closed sets; their number is bounded anyway. Those beyond the
// bound are added up in one more sample, so that a sum over all of them is right.

import type { IngestCounters, ReasonCount } from '../../ingest/ingest.ts'
import type { LaneView } from '../../spool/spool.ts'
import { verdicts } from '../gateway-verdict/gateway-verdict.ts'
import { oldestOf } from '../lane-age.ts'
import type { Metric, MetricName, Sample } from '../status-schema/fact.ts'
import type { MetricsView } from './metrics-view.ts'

const samplesMax = 100
/** Every label of the sample of those beyond. */
const otherLabel = 'other'

type Label = readonly [labels: Record<string, string>, value: number]

function labelled(
  name: MetricName,
  help: string,
  labels: readonly string[],
  read: (view: MetricsView) => readonly Label[],
): Metric<MetricsView> {
  const type = name.endsWith('_total') ? 'counter' : 'gauge'
  return { name, type, help, labels, read: (view) => bounded(read(view)) }
}

function bounded(all: readonly Label[]): Sample[] {
  const samples = all.slice(0, samplesMax).map(([labels, value]) => ({ labels, value }))
  const [first] = samples
  if (first === undefined || all.length <= samplesMax) return samples
  const rest = all.slice(samplesMax).reduce((sum, [, value]) => sum + value, 0)
  const labels = Object.fromEntries(Object.keys(first.labels).map((label) => [label, otherLabel]))
  return [...samples, { labels, value: rest }]
}

/** A label value is a stable code. Reasons in words, such as `no fix`, become one; /status has the words. */
function labelCode(text: string): string {
  return text.replaceAll(/[^\w.:-]+/g, '_').slice(0, 64)
}

/** A label is empty where there is no source. */
function bySource(counts: readonly ReasonCount[] = []): readonly Label[] {
  return counts.map(({ source, reason, count }) => [
    { source: source ?? '', reason: labelCode(reason) },
    count,
  ])
}

function by(label: string, counts: Iterable<readonly [string, number]> = []): readonly Label[] {
  return [...counts].map(([key, value]) => [{ [label]: labelCode(key) }, value])
}

type ProtocolUse = IngestCounters['protocolUses'][number]

/** As the schemes of listeners. */
const transportLabels: Readonly<Record<ProtocolUse['transport'], string>> = {
  TCP: 'mqtt',
  TLS: 'mqtts',
  WebSocket: 'ws',
  'WebSocket with TLS': 'wss',
}

/** One sample for each version of MQTT and each kind of listener, also where it is 0. */
function byProtocol(name: MetricName, help: string, read: (use: ProtocolUse) => number) {
  return labelled(name, help, ['version', 'transport'], ({ ingest }) =>
    (ingest?.protocolUses ?? []).map((use) => [
      { version: use.version, transport: transportLabels[use.transport] },
      read(use),
    ]),
  )
}

/** Lanes come and go; what is scraped is combined by provider and role. */
function byRole(
  name: MetricName,
  help: string,
  read: (lane: LaneView) => number | null,
  combine: (a: number, b: number) => number,
) {
  return labelled(name, help, ['provider', 'role'], (view) => {
    const samples = new Map<string, Label>()
    for (const lane of view.lanes) {
      const value = read(lane)
      if (value === null) continue
      const labels = { provider: lane.provider, role: lane.role.kind }
      const key = JSON.stringify(labels)
      const known = samples.get(key)
      samples.set(key, [labels, known ? combine(known[1], value) : value])
    }
    return [...samples.values()]
  })
}

const sum = (a: number, b: number) => a + b
const endpointStates = ['available', 'unavailable', 'unauthorized'] as const

export const labelledMetrics: readonly Metric<MetricsView>[] = [
  labelled(
    'gateway_messages_ignored_total',
    'Messages ignored on purpose, by source and reason.',
    ['source', 'reason'],
    ({ ingest }) => bySource(ingest?.ignoredByReason),
  ),
  labelled(
    'gateway_messages_dead_total',
    'Messages that became dead letters, by source and reason.',
    ['source', 'reason'],
    ({ ingest }) => bySource(ingest?.deadByReason),
  ),
  labelled(
    'gateway_messages_quarantined_total',
    'Messages quarantined.',
    ['source', 'reason'],
    ({ ingest }) => bySource(ingest?.quarantinedByReason),
  ),
  labelled('gateway_clients_refused_total', 'Connections refused, by reason.', ['reason'], ({ ingest }) =>
    by('reason', ingest?.refusedByReason),
  ),
  labelled(
    'gateway_clients_dropped_total',
    'Connections that the gateway closed, by reason.',
    ['reason'],
    ({ ingest }) => by('reason', ingest?.droppedByReason),
  ),
  labelled(
    'gateway_messages_refused_total',
    'Messages that their clients may not publish, by reason. With on_violation: drop, they are ignored, too.',
    ['reason'],
    ({ ingest }) => by('reason', ingest?.refusedMessages),
  ),
  labelled(
    'gateway_client_pauses_total',
    'Pauses in reading a client that sends more than its rate, by limit.',
    ['reason'],
    ({ ingest }) => by('reason', ingest?.pausesByLimit),
  ),
  byProtocol(
    'gateway_clients_connected',
    'Connections of clients whose CONNECT was accepted, by version of MQTT and kind of listener.',
    ({ open }) => open,
  ),
  byProtocol(
    'gateway_clients_accepted_total',
    'Accepted CONNECTs, by version of MQTT and kind of listener.',
    ({ accepted }) => accepted,
  ),
  byProtocol(
    'gateway_client_messages_total',
    'Messages of clients, without wills, by version of MQTT and kind of listener.',
    ({ messages }) => messages,
  ),
  labelled(
    'gateway_device_times_total',
    'Device times by verdict: in the future, never set, a day old, replaced; since the last reload.',
    ['verdict'],
    ({ mapping }) => {
      if (mapping === undefined) return []
      const { future, unset, old, restamped } = mapping.clocks
      return by('verdict', Object.entries({ future, unset, old, restamped }))
    },
  ),
  ...(['omitted', 'flagged'] as const).map((fields) =>
    labelled(
      `gateway_fields_${fields}_total`,
      fields === 'omitted'
        ? 'Fields omitted from payloads, since the last reload.'
        : 'Fields sent although they are not plausible (`action: flag`), since the last reload.',
      ['source', 'field', 'reason'],
      ({ mapping }) =>
        (mapping?.[fields] ?? []).map(({ source, field, reason, values }) => [
          { source, field, reason: labelCode(reason) },
          values,
        ]),
    ),
  ),
  byRole('gateway_payloads_pending', 'Payloads that are in no batch yet.', ({ pending }) => pending, sum),
  byRole(
    'gateway_payloads_sealed',
    'Payloads in sealed batches that are not settled.',
    ({ sealed }) => sealed,
    sum,
  ),
  byRole(
    'gateway_payloads_oldest_timestamp_seconds',
    'When the oldest payload that is not settled was stored, Unix time. Sealed ones count.',
    (lane) => {
      const at = oldestOf(lane)
      return at === null ? null : at / 1000
    },
    Math.min,
  ),
  labelled(
    'gateway_spool_held',
    '1 while the spool accepts no messages, by reason.',
    ['reason'],
    ({ stages }) => {
      const reason = stages.spool?.holdReason() ?? null
      return reason === null ? [] : [[{ reason }, 1]]
    },
  ),
  labelled(
    'gateway_dead_letters_purged_total',
    'Dead letters deleted, by a command or by age. Their data is lost.',
    ['by'],
    ({ stages }) => by('by', Object.entries(stages.deadLetters?.counters().purged ?? {})),
  ),
  labelled(
    'gateway_payloads_accepted_total',
    'Payloads that the service accepted, by the role of their lane.',
    ['lane'],
    ({ acceptedByLane }) => by('lane', acceptedByLane),
  ),
  labelled('gateway_submissions_total', 'Submissions, by outcome.', ['outcome'], ({ delivery }) =>
    by('outcome', delivery?.outcomes),
  ),
  labelled(
    'gateway_endpoint_state',
    '1 for the state of the endpoint of a provider, else 0.',
    ['provider', 'state'],
    (view) =>
      view.providers.flatMap(({ name, endpoint }) =>
        endpointStates.map((state) => [{ provider: name, state }, Number(endpoint === state)] as const),
      ),
  ),
  labelled(
    'gateway_certificate_expiry_timestamp_seconds',
    'When a certificate of the config ends, Unix time, by use (listener, client_ca, ops, bridge, delivery). Of a chain, ' +
      'when the first of its certificates ends.',
    ['use', 'name'],
    ({ stages }) =>
      (stages.certificates?.certificates() ?? []).map(({ use, name, notAfterMs }) => [
        { use, name },
        notAfterMs / 1000,
      ]),
  ),
  labelled(
    'gateway_http_refused_total',
    'Requests and TLS handshakes on ops.listen that were refused, by reason.',
    ['reason'],
    ({ http }) => by('reason', http?.refused),
  ),
  // Keys are no labels: a batchId would make a new series for each batch.
  labelled('gateway_condition', '1 while a condition is open.', ['code', 'severity'], ({ conditions }) => {
    const open = new Map(conditions.map(({ code, severity }) => [`${code}|${severity}`, { code, severity }]))
    return [...open.values()].map((labels) => [labels, 1])
  }),
  labelled(
    'gateway_verdict',
    '1 for the verdict that holds now: ok, degraded, not_delivering or not_receiving.',
    ['verdict'],
    ({ verdict: now }) => verdicts.map((verdict) => [{ verdict }, Number(verdict === now)]),
  ),
  labelled(
    'gateway_build_info',
    'Always 1, with the version as label.',
    ['version', 'node'],
    ({ version }) => [[{ version, node: process.version }, 1]],
  ),
]

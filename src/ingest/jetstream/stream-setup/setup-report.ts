// setup-report.ts: what of NATS would lose, strand or delay messages, as conditions of the bridge: one of
// each kind, with the first finding in words, until there is none.

import type { CancelTimer, Clock } from '../../../std/clock.ts'
import type { Emit, EventOf } from '../../../domain/event.ts'
import type { MessageRefusal } from '../../types.ts'
import { apiCode, natsFault, notFound } from '../nats-faults.ts'
import { durableName } from '../nats-subjects.ts'
import { parkingName } from '../jetstream-parking/parking-streams.ts'
import type { CustodyQueue } from '../../message-sources/types.ts'
import { addCommand, type SetupFinding } from './stream-setup.ts'
import { mqttStream, type JetStreamOptions } from '../types.ts'

type Risk = EventOf<'message_source_at_risk'>['risk']

export type SetupReport = {
  stream(findings: readonly SetupFinding[]): void
  durable(partition: number, finding: SetupFinding | null): void
  missing(partition: number, isMissing: boolean): void
  isMissingDurable(error: unknown): boolean
  /**
   * It was not there, and was created. `gone`: messages that devices published before and the stream does not
   * have; null: it was there since the start.
   */
  created(partition: number, gone: number | null): void
  /** Of custody `delivered`. */
  parking(findings: { missing: readonly SetupFinding[]; different: readonly SetupFinding[] }): void
  /** Of custody, too: it was deleted while the gateway ran. */
  parkingCreated(queue: CustodyQueue): void
  mapping(finding: SetupFinding | null): void
  /** Durables beyond the number of partitions. */
  left(finding: SetupFinding | null): void
  mixed(partition: number, finding: SetupFinding | null): void
  nameTaken(isTaken: boolean): void
  otherNumber(other: { member: string; partitions: number } | null): void
  /** A request failed, and is tried again. */
  failed(error: unknown): void
  /** A partition takes messages. */
  works(): void
  refusedMessage(refusal: MessageRefusal): void
  close(): void
}

/** What happened once is shown for so long after the last time. */
const shownForMs = 86_400_000
/** A durable that was created is in use since: what remains to be done is to look for the cause. */
const createdForMs = 3_600_000
/** An election takes less. */
const failingAfterMs = 20_000

export function createSetupReport(
  { clock, emit }: { clock: Clock; emit: Emit },
  options: JetStreamOptions,
): SetupReport {
  const { name: messageSource, member: clientId, stream } = options
  /** By kind, and by what it is about. */
  const open = new Map<Risk, Map<string, SetupFinding>>()
  const timers = new Map<Risk, CancelTimer>()
  let failingSinceMs: number | null = null

  function report(risk: Risk, about: string, finding: SetupFinding | null): void {
    const found = open.get(risk) ?? new Map<string, SetupFinding>()
    const had = found.get(about)
    if (finding === null) found.delete(about)
    else found.set(about, finding)
    open.set(risk, found)
    if (finding !== null && had?.detail !== finding.detail)
      emit({ kind: 'message_source_at_risk', messageSource, clientId, risk, ...finding })
    else if (had !== undefined && found.size === 0) emit({ kind: 'message_source_safe', messageSource, risk })
  }

  /** These, and no others of the kind. */
  function reportAll(risk: Risk, findings: readonly SetupFinding[]): void {
    for (const finding of findings) report(risk, finding.detail, finding)
    for (const about of open.get(risk)?.keys() ?? [])
      if (!findings.some(({ detail }) => detail === about)) report(risk, about, null)
  }

  /** Over when it did not happen again for this time. */
  function happened(risk: Risk, about: string, finding: SetupFinding, forMs = shownForMs): void {
    report(risk, about, null)
    report(risk, about, finding)
    timers.get(risk)?.()
    timers.set(
      risk,
      clock.after(forMs, () => {
        for (const one of open.get(risk)?.keys() ?? []) report(risk, one, null)
      }),
    )
  }

  return {
    stream: (findings) => reportAll('stream_settings', findings),
    parking({ missing, different }) {
      reportAll('queue_missing', missing)
      reportAll('queue_differs', different)
    },
    durable: (partition, finding) => report('durable_differs', String(partition), finding),
    missing: (partition, isMissing) =>
      report(
        'durable_missing',
        String(partition),
        isMissing
          ? {
              detail:
                `The durable ${durableName(options, partition)} of the stream ${stream} does not exist. ` +
                (stream === mqttStream
                  ? 'NATS acknowledges the messages of its partition to the devices, and does not store them'
                  : 'The messages of its partition are not taken'),
              act: `Run: ${addCommand(options, partition)}. Or set provision: true.`,
            }
          : null,
      ),
    isMissingDurable: (error) => apiCode(error) === notFound.consumer,
    created(partition, gone) {
      // Before the first message of all there was nothing that it could miss.
      if (gone === 0) return
      const what =
        gone === null
          ? 'It was deleted while the gateway ran, and what it had not delivered was deleted with it'
          : stream === mqttStream
            ? `Devices had published ${gone} messages that NATS does not have any more; what was in its partition was not stored`
            : 'It begins with the first message that the stream has'
      happened(
        'durable_created',
        String(partition),
        {
          detail: `The durable ${durableName(options, partition)} was missing and was created. ${what}`,
          act:
            'Nothing more is lost from now on. Find out why it was missing: it was deleted, or devices published before ' +
            'the first start of a gateway. It is shown for an hour.',
        },
        createdForMs,
      )
    },
    parkingCreated(queue) {
      const lost =
        queue === 'parked'
          ? 'The payloads and messages that were parked in it are lost, unless there is a backup of the stream'
          : 'The copies of dead letters in it are lost; the dead letters themselves are still in their gateways'
      happened('custody_deleted', queue, {
        detail: `The stream ${parkingName(options, queue)} was deleted while the gateway ran, and was created again. ${lost}`,
        act: 'Find out who deleted it, and take that right away. It is shown for a day.',
      })
    },
    mapping: (finding) => report('mapping_differs', '', finding),
    left: (finding) => report('partition_left', '', finding),
    mixed: (partition, finding) => report('partition_mixed', String(partition), finding),
    nameTaken: (isTaken) =>
      report(
        'member_twice',
        '',
        isTaken
          ? {
              detail: `Another gateway takes part as ${clientId}. This one takes no messages`,
              act: 'Give each gateway its own `member`.',
            }
          : null,
      ),
    otherNumber: (other) =>
      report(
        'partitions_differ',
        '',
        other === null
          ? null
          : {
              detail:
                `The gateway ${other.member} shares ${other.partitions} partitions, and this one has ` +
                `partitions: ${options.partitions}. This one takes no messages`,
              act:
                'Give all gateways the same `durables.partitions`, the number in `mappings` of the account. This one ' +
                'takes part when no gateway with the other number runs.',
            },
      ),
    failed(error) {
      failingSinceMs ??= clock.monotonic()
      const { reason, detail, act } = natsFault(error, options)
      const isDenied = reason === 'permission_denied'
      if (!isDenied && clock.monotonic() - failingSinceMs < failingAfterMs) return
      report('not_ready', '', { detail, act })
    },
    works() {
      failingSinceMs = null
      report('not_ready', '', null)
    },
    refusedMessage: ({ reason, detail }) =>
      happened(reason === 'OVERSIZED' ? 'oversized' : 'bad_topic', '', {
        detail,
        act:
          reason === 'OVERSIZED'
            ? 'Raise max_message_bytes of the bridge if such messages are meant for the gateway, then requeue the dead ' +
              'letters (OVERSIZED). It is shown for a day.'
            : 'Look for the client that publishes there: MQTT does not allow such a topic. The message is a dead letter ' +
              '(BAD_TOPIC). It is shown for a day.',
      }),
    close() {
      for (const cancel of timers.values()) cancel()
    },
  }
}

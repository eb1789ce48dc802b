// condition-texts.ts: what a condition says to the person who reads it at three in the morning: what is wrong, why as far
// as known, and what to do now.

import { assertNever } from '../../std/assert.ts'
import { formatDuration } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { ConditionText } from './conditions.ts'

type Event<Kind extends GatewayEvent['kind']> = Extract<GatewayEvent, { kind: Kind }>

/** A fault's own three sentences. */
export function ofFault({ what, why, act }: ConditionText): ConditionText {
  return { what, why, act }
}

export function unavailable(event: Event<'endpoint_unavailable'>): ConditionText {
  return {
    what: `The ingestion API takes no batches of provider ${quote(event.provider, 64)} (${event.failures} failures).`,
    why: `${event.why} Last requestId: ${event.requestId ?? 'none'}.`,
    act: `${event.act ?? 'If it lasts, ask the support of the API.'} Nothing is lost: the spool keeps filling and sending resumes by itself.`,
  }
}

export function unauthorized(event: Event<'endpoint_unauthorized'>): ConditionText {
  const { status, message, requestId, accessKeyId, clockOffsetMs, retryInMs } = event
  const offset =
    clockOffsetMs === null
      ? 'the clock offset is not known'
      : `our clock is ${offsetText(clockOffsetMs)} the service`
  return {
    what: `The ingestion API answers ${status} to provider ${quote(event.provider, 64)}.`,
    why:
      `One of three: the signature (access key ${accessKeyId ?? 'unknown'}), the account (not the registered one), ` +
      `the clock (${offset}). It said ${quote(message)}, requestId ${requestId ?? 'none'}.`,
    act: `Check the credentials and that their account is registered. The next probe is in ${formatDuration(retryInMs)}.`,
  }
}

/** `offsetMs`: the service's clock minus ours. */
export function offsetText(offsetMs: number): string {
  return `${formatDuration(Math.abs(offsetMs))} ${offsetMs > 0 ? 'behind' : 'ahead of'}`
}

export function staleCredentials(event: Event<'credentials_stale'>): ConditionText {
  const until = event.expiresAt === null ? '' : ` They expire at ${new Date(event.expiresAt).toISOString()}.`
  return {
    what: `The credentials of provider ${quote(event.provider, 64)} cannot be refreshed; the old ones go on to serve.`,
    why: `${event.why}${until}`,
    act: 'Check where delivery.credentials says that they come from. It is tried again by itself.',
  }
}

export function clockOff(event: Event<'service_clock_off'>): ConditionText {
  return {
    what: `The clock of this machine is ${offsetText(event.offsetMs)} that of the ingestion API.`,
    why: 'The Date of its answers says so. Signatures are made with its time, so sending goes on.',
    act: 'Set the time (timedatectl, chrony). Beyond the dates of certificates nothing can be sent any more.',
  }
}

export function unknownProvider({ provider, payloads }: Event<'provider_unknown'>): ConditionText {
  return {
    what: `${payloads} payloads wait for provider ${quote(provider, 64)}, which the config does not have.`,
    why: 'It was renamed or taken out of delivery.providers while payloads were waiting, or was added since the start.',
    act: 'They are kept. Put it back into the config, under this name, until they are delivered; where it is there, restart.',
  }
}

export function noCredentials(event: Event<'credentials_failed'>): ConditionText {
  return {
    what: `No credentials to sign the batches of provider ${quote(event.provider, 64)}.`,
    why: event.why,
    act: 'Check delivery.credentials in the config and that the daemon may read them. Payloads wait in the spool.',
  }
}

export function held({ reason, detail }: Event<'spool_held'>): ConditionText {
  const why = detail
  switch (reason) {
    case 'spool_full':
      return {
        what: 'The spool is full; acks are held and QoS 0 messages are lost.',
        why,
        act: 'See why nothing is delivered (endpoint conditions), or raise spool.max_bytes where the disk has room.',
      }
    case 'disk_low':
      return {
        what: 'The disk of the spool is nearly full; acks are held and QoS 0 messages are lost.',
        why,
        act: 'Free space on that file system. Intake goes on by itself; never delete files of the spool.',
      }
    case 'quarantine_full':
      return {
        what: 'The messages in quarantine reached their limit; acks are held and QoS 0 messages are lost.',
        why,
        act: 'See `quarantine list`: add the devices to the table, release or drop messages; or raise spool.quarantine_max_bytes.',
      }
    case 'deferred_full':
      return {
        what: 'More messages wait for their jsonata expression than the limit allows; acks are held.',
        why,
        act: 'Nothing, if it passes. Else make the expression cheaper, or raise spool.deferred_max_bytes.',
      }
    case 'state_full':
      return {
        what: 'The state of the mapping reached its limit; acks are held and QoS 0 messages are lost.',
        why,
        act: 'It goes on when open records have closed. If it lasts, raise spool.state_max_bytes.',
      }
    case 'store_lost':
      return {
        what: 'A write to the spool failed; nothing is acknowledged until it is open again.',
        why,
        act: 'Check the disk and its file system (df, dmesg). It is opened again by itself.',
      }
    default:
      return assertNever(reason)
  }
}

export function damaged(event: Event<'chunk_damaged'>): ConditionText {
  return {
    what: `${event.payloads} payloads of lane ${event.lane} from number ${event.firstSeq} cannot be read.`,
    why: `${event.what} They are set aside in the spool, not deleted; the lane goes on.`,
    act: 'Check the disk (dmesg, SMART). Keep a copy of the spool directory before anything else.',
  }
}

export function unbalanced(event: Event<'conservation_broken'>): ConditionText {
  return {
    what: `Lane ${event.lane}: ${event.appended} appended, but ${event.settled} settled and ${event.open} open.`,
    why: 'Either stored data was lost or this is a fault of the gateway.',
    act: 'Keep a copy of the spool directory and the log, and report it.',
  }
}

export function damagedRecord(event: Event<'record_damaged'>): ConditionText {
  return {
    what: `${recordsOf(event)} cannot be read whole.`,
    why: `${event.what}. Nothing was deleted.`,
    act: 'Check the disk (dmesg, SMART). Keep a copy of the spool directory before anything else.',
  }
}

export function unbalancedRecords(event: Event<'records_unbalanced'>): ConditionText {
  return {
    what: `${recordsOf(event)}: ${event.known} should be there and ${event.found} are.`,
    why: 'Either stored data was lost or this is a fault of the gateway.',
    act: 'Keep a copy of the spool directory and the log, and report it.',
  }
}

export function recordsOf(event: Event<'record_damaged' | 'records_unbalanced'>): string {
  if (event.table === 'kept') return `The kept messages of ${quote(event.name, 100)}`
  return event.name === ''
    ? 'The state of the mapping'
    : `The state of the mapping under ${quote(event.name, 100)}`
}

export function stuck(event: Event<'batch_stuck'>): ConditionText {
  return {
    what: `Batch ${event.batchId} of provider ${quote(event.provider, 64)} failed ${event.failures} times.`,
    why: 'Other batches succeed meanwhile, so something in this one may be what the service fails on.',
    act: 'Ask the support of the ingestion API about this batchId. It is tried again at growing intervals.',
  }
}

export function wrapper(event: Event<'wrapper_refused'>): ConditionText {
  return {
    what: `The ingestion API refuses whatever is sent for provider ${quote(event.provider, 64)}.`,
    why: `${event.why} (requestId ${event.requestId ?? 'none'}).`,
    act:
      'Check delivery.base_url, delivery.mode, the provider key and what was changed in the mapping. Nothing is lost: ' +
      'all of it is held and one request goes every ten minutes, or at once with `probe`.',
  }
}

export function odd(event: Event<'answer_inconsistent'>): ConditionText {
  return {
    what: `An answer to batch ${event.batchId} of provider ${quote(event.provider, 64)} is odd.`,
    why: event.deviations.slice(0, 5).join('; '),
    act: `Give the support of the ingestion API this requestId: ${event.requestId ?? 'none was sent'}.`,
  }
}

export function latestDeath(event: Event<'message_unmappable' | 'payload_dead_lettered'>): string {
  return event.kind === 'message_unmappable'
    ? `Latest: ${event.reason} on topic ${quote(event.topic, 100)}: ${quote(event.detail)}`
    : `Latest: ${quote(event.reason, 64)} for payload ${event.payloadId}: ${quote(event.detail)}`
}

export function deadLetters(count: number, why: string): ConditionText {
  return {
    what: `${count} messages or payloads became dead letters since the start.`,
    why,
    act: 'They are kept whole in the spool with their reasons. `dead-letters list` shows what is wrong; mend it and requeue them.',
  }
}

export function dropped(count: number, why: string): ConditionText {
  return {
    what: `${count} QoS 0 messages were lost since the start.`,
    why,
    act: 'Let devices publish with QoS 1: such messages are held by the device while the spool takes nothing in.',
  }
}

// record-context.ts: the one context of a mapper, filled anew for every record (types.ts).

import type { Message } from '../../domain/message.ts'
import type { WithheldCounts } from '../plausibility/withheld-counts.ts'
import type { SuspectDevices } from '../plausibility/suspect-devices.ts'
import type { RecordContext } from '../types.ts'

export function createRecordContext(
  withheld: Pick<WithheldCounts, 'omit' | 'implausible'>,
  watched: Pick<SuspectDevices, 'omitted' | 'implausible'> | null = null,
): RecordContext {
  const context: RecordContext = {
    record: undefined,
    root: undefined,
    badByteAt: 0,
    broken: null,
    up: undefined,
    captures: [],
    sender: { clientId: '', userName: null, certificateName: null, identity: null },
    recordSender: null,
    userProperties: null,
    properties: null,
    arrivedAt: 0,
    stored: null,
    offsetMs: null,
    latest: { at: 0, offsetMs: null },
    live: true,
    notes: null,
    owner: null,
    isLossNoted: false,
    rejection: { kind: 'ignored', reason: '' },
    isTimed: false,
    refuse(reason, detail) {
      context.rejection = { kind: 'refused', reason, detail, isTimed: context.isTimed }
      return null
    },
    refuseByRule({ reason, detail }) {
      context.rejection = { kind: 'refused', reason, detail }
      return null
    },
    ignore(reason) {
      context.rejection = { kind: 'ignored', reason }
      return null
    },
    quarantine(reason, detail) {
      context.rejection = { kind: 'quarantined', reason, detail, isTimed: context.isTimed }
      return null
    },
    device: '',
    entry: null,
    omit(key, ofDevice = key) {
      if (context.live && context.entry !== null) watched?.omitted(context.entry, key, context.arrivedAt)
      withheld.omit(context.device, key, ofDevice)
      return undefined
    },
    leftOut: false,
    present: 0,
    judged: 0,
    unwanted: 0,
    implausible(finding, value) {
      if (!finding.isSent) context.leftOut = true
      if (context.live && context.entry !== null)
        watched?.implausible(context.entry, finding.key, context.arrivedAt)
      withheld.implausible(context.device, finding, value)
    },
    motionSpeed: Number.NaN,
    zeroPosition: false,
    latitude: Number.NaN,
    longitude: Number.NaN,
    counterValues: [],
    counterReads: [],
  }
  return context
}

/**
 * Puts a message into the context; its records follow. `clockOffsetMs`: for one that does not say it itself.
 */
export function beginMessage(
  context: RecordContext,
  message: Message,
  more: { root: unknown; captures: readonly string[]; clockOffsetMs: () => number | null },
): void {
  const { sender, arrivedAt, arrival, stored, userProperties = null, properties = null } = message
  context.captures = more.captures
  context.root = more.root
  context.sender = sender
  context.recordSender = sender
  context.userProperties = userProperties
  context.properties = properties
  context.arrivedAt = arrivedAt
  context.stored = stored ?? null
  context.offsetMs = arrival === undefined ? more.clockOffsetMs() : arrival.offsetMs
  context.latest.at = arrivedAt
  context.latest.offsetMs = context.offsetMs
}

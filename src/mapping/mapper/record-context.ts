// record-context.ts: the one context of a mapper, filled anew for every record (types.ts).

import type { RecordContext } from '../types.ts'

/** `omitted` counts what is left out, keyed `source|field|why`. */
export function createRecordContext(omitted: Map<string, number>): RecordContext {
  const context: RecordContext = {
    record: undefined,
    root: undefined,
    up: undefined,
    captures: [],
    sender: { clientId: '', userName: null, certificateName: null, identity: null },
    recordSender: null,
    arrivedAt: 0,
    offsetMs: null,
    latest: { at: 0, offsetMs: null },
    rejection: { kind: 'ignored', reason: '' },
    refuse(reason, detail) {
      context.rejection = { kind: 'refused', reason, detail }
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
      context.rejection = { kind: 'quarantined', reason, detail }
      return null
    },
    omit(key) {
      omitted.set(key, (omitted.get(key) ?? 0) + 1)
      return undefined
    },
    motionSpeed: Number.NaN,
    zeroPosition: false,
  }
  return context
}

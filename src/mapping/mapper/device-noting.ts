// device-noting.ts: tells the notes (../types.ts) which device a message is of, and what became of it.

import type { Message } from '../../domain/message.ts'
import type { DeviceNotes, MapResult, NotedDevice, RecordContext } from '../types.ts'

export function createDeviceNoting(context: RecordContext, notes: DeviceNotes | null) {
  context.notes = notes
  return { begin, heard, ended }

  function begin(message: Message, live: boolean): void {
    context.owner = null
    context.isLossNoted = false
    context.notes = live ? notes : null
    context.notes?.begin(message)
  }

  function heard(entry: NotedDevice): void {
    context.owner = entry
    context.notes?.heard(entry)
  }

  /** The device of a message without a payload is known where its topic, or a record of it, names one. */
  function ended(result: MapResult, arrives = true): MapResult {
    const { owner, notes: target, isLossNoted } = context
    context.notes = notes
    if (target === null) return result
    if (owner === null) {
      if ('reason' in result) target.unnamed(result)
      return result
    }
    const { kind, source } = result
    if (arrives) target.ended(owner, kind)
    if (isLossNoted) return result
    if (kind === 'ignored' || kind === 'quarantined') target.lost(owner, kind, source, result.reason)
    else if (kind === 'unmappable') target.lost(owner, 'dead', source, result.reason)
    return result
  }
}

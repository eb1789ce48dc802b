// other-controllers.ts: values on a J1939 bus that come from another controller than the selected one, by
// message. They are counted for the device, so that a person sees which address to select.

import type { RecordContext } from '../types.ts'
import type { ExtractConfig } from './extract-config.ts'
import { compileExtractor } from './extract.ts'
import { addressText, type OnOther, type OtherController } from './j1939.ts'

export type OtherControllers = {
  /** Forgets those of the message before. */
  begin(): void
  add(into: string, other: OtherController): void
  /** Whether there is something to count. */
  isEmpty(): boolean
  /** Counts those of the message, once. */
  count(context: Pick<RecordContext, 'omit'>): void
}

export function createOtherControllers(source: string, entries: readonly ExtractConfig[]): OtherControllers {
  let found: { into: string; signal: string; address: number }[] = []
  return {
    begin() {
      if (found.length > 0) found = []
    },
    add(into, { signal, address, isFound }) {
      if (!isFound) found.push({ into, signal, address })
    },
    isEmpty: () => found.length === 0,
    count(context) {
      const all = found
      found = []
      for (const { into, signal, address } of all) {
        const field = `${source}|${into}.${signal}`
        const why = `of source ${addressText(address)}, ${selectedText(entries, into, signal)}`
        context.omit(`${field}|another controller`, `${field}|${why}`)
      }
    },
  }
}

/** In words for a person: `engineHours of 0x27, source: 0 is selected`. Compiled each time. */
export function ignoredControllers(entries: readonly ExtractConfig[], captureNames: readonly string[]) {
  return (record: unknown, captures: readonly string[]): { into: string; text: string }[] => {
    const found: { into: string; text: string }[] = []
    for (const entry of entries) {
      if (entry.as !== 'j1939') continue
      const onOther: OnOther = ({ signal, address }) => {
        const text = `${signal} of source ${addressText(address)}, ${selectedText(entries, entry.into, signal)}`
        found.push({ into: entry.into, text })
      }
      const { find } = compileExtractor(entry, captureNames, { onOther })
      find(record, record, captures)
    }
    return found
  }
}

/** `source: 0 is selected`. */
function selectedText(entries: readonly ExtractConfig[], into: string, signal: string): string {
  for (const entry of entries) {
    const selected = entry.as === 'j1939' && entry.into === into ? entry.signals[signal]?.source : undefined
    if (selected !== undefined)
      return `source: ${Array.isArray(selected) ? `[${selected.join(', ')}]` : String(selected)} is selected`
  }
  return ''
}

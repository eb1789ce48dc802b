// ledger-export.ts: prints ledger entries as a table, as CSV or as JSON, answer by answer.

import { zonedTime } from '../../std/clock.ts'
import type { LedgerAnswer, LedgerEntry, LedgerQuery } from '../../ledger/ledger.ts'
import type { IsoTimes } from '../../std/iso-times.ts'
import { plural } from '../../std/quantity.ts'
import { bounded, visible } from '../../std/quote.ts'
import { columns } from '../../std/text-table/text-table.ts'

type Entry = IsoTimes<LedgerEntry>

export type Export = {
  begin(query: LedgerQuery): void
  entries(some: readonly Entry[]): void
  end(last: Omit<IsoTimes<LedgerAnswer>, 'entries'> & { more: boolean }): void
}

type Write = (text: string) => void

/** `width`: of the terminal. */
export function tableExport(write: Write, width: number): Export {
  let count = 0
  return {
    begin({ from, to }) {
      if (from === undefined && to === undefined) return
      const words = [
        from === undefined ? '' : ` from ${zonedTime(from)}`,
        to === undefined ? '' : ` to ${zonedTime(to)}`,
      ]
      write(`Payloads measured${words.join('')}:\n`)
    },
    entries(some) {
      if (some.length === 0) return
      const head =
        count === 0 ? [['settled', 'device', 'measured', 'outcome', 'requestId', 'batchId', 'payloadId']] : []
      count += some.length
      write(`${columns([...head, ...some.map(rowOf)], width).join('\n')}\n`)
    },
    end({ next, oldestAt, behind }) {
      const since = oldestAt === null ? 'It is empty.' : `Its oldest entry is of ${zonedTime(oldestAt)}.`
      if (count === 0) write(`The ledger has no such entry. ${since}\n`)
      if (next !== null) write('There may be more entries. Raise --limit to see them.\n')
      if (behind > 0) write(`${plural(behind, 'settled batch', 'settled batches')} not in the ledger yet.\n`)
    },
  }
}

function rowOf({ at, device, deviceTime, requestId, batchId, payloadId, ...result }: Entry): string[] {
  const measured = deviceTime === null ? '-' : zonedTime(deviceTime)
  return [zonedTime(at), device ?? '-', measured, outcomeText(result), requestId ?? '-', batchId, payloadId]
}

type Result = Pick<Entry, 'outcome' | 'step' | 'reason' | 'detail'>

function outcomeText({ outcome, step, reason, detail }: Result): string {
  const what = step === null ? outcome : `${outcome} after attempt ${step + 1}`
  const why = [reason, detail].filter((text) => text !== null && text !== '').join(': ')
  return why === '' ? what : `${what} (${bounded(why, 80)})`
}

export function jsonExport(write: Write): Export {
  let separator = ''
  return {
    begin: () => write('{"entries":['),
    entries(some) {
      for (const entry of some) {
        write(`${separator}\n${JSON.stringify(entry)}`)
        separator = ','
      }
    },
    end: (last) => write(`\n],${JSON.stringify(last).slice(1)}\n`),
  }
}

const csvColumns: readonly (readonly [name: string, read: (entry: Entry) => string | number | null])[] = [
  ['settled_at', ({ at }) => at],
  ['device', ({ device }) => device],
  ['device_time', ({ deviceTime }) => deviceTime],
  ['outcome', ({ outcome }) => outcome],
  ['reason', ({ reason }) => reason],
  ['detail', ({ detail }) => detail],
  ['schedule', ({ schedule }) => schedule],
  ['step', ({ step }) => step],
  ['provider', ({ provider }) => provider],
  ['lane', ({ lane }) => lane],
  ['payload_id', ({ payloadId }) => payloadId],
  ['batch_id', ({ batchId }) => batchId],
  ['request_id', ({ requestId }) => requestId],
]

export function csvExport(write: Write): Export {
  return {
    begin: () => write(`${csvColumns.map(([name]) => name).join()}\r\n`),
    entries(some) {
      for (const entry of some) write(`${csvColumns.map(([, read]) => csvCell(read(entry))).join()}\r\n`)
    },
    end: () => undefined,
  }
}

/** A spreadsheet runs a text that begins like a formula; a number stays one. Names come from devices. */
export function csvCell(value: string | number | null): string {
  const plain = value === null ? '' : String(value)
  const isFormula = /^[=+\-@\t\r]/.test(plain) && !/^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(plain)
  // A terminal or a log may show the file.
  const text = visible(isFormula ? `'${plain}` : plain)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

// ledger-export.ts: prints ledger entries as a table, as CSV or as JSON, answer by answer.

import { linesOfBlocks, operationNamed, type ShownLedger } from '../../ops/ops.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'
import { visible, visibleJson } from '../../std/quote.ts'
import { timesLine } from '../operation-command.ts'
import { terminalWidth, type CommandIo } from '../terminal/terminal.ts'

type Entry = ShownLedger['entries'][number]

export type Export = { answer(answer: ShownLedger, isLast: boolean): void }

/** `values`: the parameters, in the zone of the gateway. */
export function exportOf(
  { csv = false, json = false }: { csv?: boolean; json?: boolean },
  values: unknown,
  { stdout }: CommandIo,
): Export {
  const write = (text: string) => void stdout.write(text)
  if (csv) return csvExport(write)
  return json
    ? jsonExport((text) => write(text.split('\n').map(visibleJson).join('\n')))
    : tableExport(write, values, terminalWidth(stdout))
}

type Write = (text: string) => void

function tableExport(write: Write, values: unknown, width: number): Export {
  const ledger = operationNamed('ledger')
  let before = timesLine(ledger, values)
  return {
    answer(answer, isLast) {
      const { behind } = answer
      const shown = { now: Date.now(), values, prints: new Set<string>() }
      const blocks = ledger.text?.({ ...answer, behind: isLast ? behind : 0 }, shown) ?? []
      const more = isLast && answer.next !== null
      const after = more ? ['There may be more entries. Raise --limit to see them.'] : []
      write(textOfLines([...before, ...linesOfBlocks(blocks, width), ...after]))
      before = []
    },
  }
}

function jsonExport(write: Write): Export {
  let separator = '{"entries":['
  return {
    answer({ entries, ...last }, isLast) {
      for (const entry of entries) {
        write(`${separator}\n${JSON.stringify(entry)}`)
        separator = ','
      }
      if (isLast) write(`${separator === ',' ? '' : separator}\n],${JSON.stringify(last).slice(1)}\n`)
    },
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

function csvExport(write: Write): Export {
  let head = `${csvColumns.map(([name]) => name).join()}\r\n`
  return {
    answer({ entries }) {
      write(head)
      head = ''
      for (const entry of entries) write(`${csvColumns.map(([, read]) => csvCell(read(entry))).join()}\r\n`)
    },
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

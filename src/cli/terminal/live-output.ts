// live-output.ts: lines that stay, and below them a block that is drawn again in place.
//
// Only a terminal that understands cursor movements gets the block. In a pipe, a file, or with TERM=dumb
// there is none, and no escape code is written. There are no colours, so NO_COLOR has nothing to turn off.
//
//   print(lines)   above the block; they scroll away as usual
//   draw(lines)    the block: at most as wide and as high as the terminal. Text is folded, never cut off
//
// After a change of the size nobody knows which rows the old block takes, so it stays, and a new one follows.

import type { Writable } from 'node:stream'

export type LiveOutput = {
  /** False: `draw` does nothing. */
  readonly isLive: boolean
  /** Columns of the terminal; infinite where there is none. */
  width(): number
  /** Waits for its reader: what is not important may be left out. */
  isBehind(): boolean
  print(lines: readonly string[]): void
  draw(lines: readonly string[]): void
  /** Removes the block. */
  clear(): void
  /** Leaves the block as it is. */
  end(): void
}

type Terminal = Writable & { isTTY?: boolean; columns?: number; rows?: number }

/** Of a terminal that does not say its size. */
const usualColumns = 80
const usualRows = 24
const columnsMin = 10
const rowsMin = 3

export function createLiveOutput(stream: Terminal, env: NodeJS.ProcessEnv): LiveOutput {
  const isLive = stream.isTTY === true && env['TERM'] !== 'dumb'
  let block: readonly string[] = []
  const forget = () => (block = [])
  if (isLive) stream.on('resize', forget)

  return { isLive, width, isBehind: () => stream.writableNeedDrain, print, draw, clear, end }

  function width(): number {
    if (stream.isTTY !== true) return Number.POSITIVE_INFINITY
    return Math.max(columnsMin, stream.columns || usualColumns)
  }

  function print(lines: readonly string[]): void {
    // A terminal folds by itself, so that a long address can still be copied.
    write([...lines], block)
  }

  function draw(lines: readonly string[]): void {
    if (!isLive) return
    // The last column stays empty: some terminals begin a new row there.
    const folded = lines.flatMap((line) => foldLine(line, width() - 1))
    const most = Math.max(rowsMin, stream.rows || usualRows) - 1
    const shown =
      folded.length <= most
        ? folded
        : [...folded.slice(0, most - 1), `(and ${folded.length - most + 1} more lines)`.slice(0, width() - 1)]
    write([], shown)
  }

  function clear(): void {
    if (block.length > 0) write([], [])
  }

  function end(): void {
    stream.off('resize', forget)
    forget()
  }

  function write(lines: readonly string[], next: readonly string[]): void {
    // To the first row of the block, and clear from there.
    const erase = block.length === 0 ? '' : `\r\u001b[${block.length}A\u001b[J`
    block = next
    stream.write(erase + [...lines, ...next].map((line) => `${line}\n`).join(''))
  }
}

/** In rows of at most `width` cells, at a blank where there is one. Further rows keep the indent. */
export function foldLine(line: string, width: number): string[] {
  const indent = /^ */.exec(line)?.[0] ?? ''
  const hanging = indent.length < width / 2 ? indent : ''
  const rows: string[] = []
  let rest = line
  for (;;) {
    const fits = lengthWithin(rest, width)
    if (fits === rest.length) return [...rows, rest]
    const blank = rest.lastIndexOf(' ', fits)
    const at = blank > hanging.length ? blank : fits
    rows.push(rest.slice(0, at))
    rest = hanging + rest.slice(at).trimStart()
  }
}

/** How much of the text fits: a character beyond Latin may take two cells. At least one character. */
function lengthWithin(text: string, width: number): number {
  let cells = 0
  let length = 0
  for (const character of text) {
    cells += (character.codePointAt(0) ?? 0) > 0x2ff ? 2 : 1
    if (cells > width && length > 0) return length
    length += character.length
  }
  return text.length
}

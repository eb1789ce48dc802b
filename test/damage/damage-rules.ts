// damage-rules.ts: judges a cell. No cell loses more than was hit, crashes, loops, reports less than is
// missing, or sends a sealed batch under another batchId.
//
// "Hit" is the checksummed unit that holds the byte: a block of a table, a group of the log, and everything
// behind a cut. A manifest, CURRENT, the mark and the ledger hold no payload, so nothing may be lost with them.

import { assertNever } from '../../src/std/assert.ts'
import type { CellResult } from './cell-run.ts'
import type { Cell, Damage } from './cells.ts'
import type { DamageBase } from './damage-base.ts'
import type { FileLayout, Unit, UnitContent } from './file-layout.ts'

export type Judgement = {
  violations: string[]
  /** Payloads in hit units, lost, reported as missing, and delivered under a second batchId. */
  hit: number
  lost: number
  reported: number
  twice: number
}

const pageBytes = 4096

export function judge(base: DamageBase, cell: Cell, result: CellResult): Judgement {
  const violations: string[] = []
  const rule = (holds: boolean, text: string) => void (holds || violations.push(text))
  const hit = sumOf(hitUnits(layoutOf(base, cell), cell.damage))
  const hitNumbers = new Set(hit.numbers)
  const { delivered, pending } = base.size

  commandRules(result, rule)
  const batchesOf = new Map<number, string[]>()
  for (const [batchId, numbers] of result.received)
    for (const number of numbers) batchesOf.set(number, [...(batchesOf.get(number) ?? []), batchId])
  const lost: number[] = []
  for (let number = delivered; number < delivered + pending; number += 1) {
    if (!batchesOf.has(number)) lost.push(number)
    rule(
      result.salvaged.has(number) || hitNumbers.has(number),
      `salvage lacks payload ${number}, which was not hit`,
    )
  }
  const lostUnhit = lost.filter((number) => !hitNumbers.has(number))
  rule(
    lostUnhit.length === 0,
    `${lostUnhit.length} payloads are lost that were not hit, first ${lostUnhit[0]}`,
  )
  const reported = reportedMissing(result)
  rule(reported >= lost.length, `${lost.length} payloads are missing, ${reported} are reported`)
  rule(
    lost.length === 0 || result.verify.status === 'exit 1',
    'payloads are missing and verify found nothing',
  )
  sealedRules(base, { result, batchesOf, hit, hitNumbers }, rule)
  keptRules(base, result, hit, rule)
  const twice = [...batchesOf].filter(([number, ids]) => ids.length > 1 || number < delivered)
  const mayRepeat = hit.deletions > 0 || hit.batchIds.length > 0
  rule(
    twice.length === 0 || mayRepeat,
    `${twice.length} payloads go twice although no deletion and no claim was hit`,
  )
  return {
    violations:
      violations.length > 8 ? [...violations.slice(0, 8), `and ${violations.length - 8} more`] : violations,
    hit: hitNumbers.size,
    lost: lost.length,
    reported,
    twice: twice.length,
  }
}

type Rule = (holds: boolean, text: string) => void

function commandRules(result: CellResult, rule: Rule): void {
  const { verify, salvage, start, plan, repair, opened, drained, end, changed, lines } = result
  rule(
    ['exit 0', 'exit 1'].includes(verify.status),
    `verify: ${verify.status} ${verify.stderr.slice(0, 300)}`,
  )
  rule(salvage.status === 'exit 0', `salvage: ${salvage.status} ${salvage.stderr.slice(0, 300)}`)
  rule(changed.length === 0, `verify or salvage changed ${changed.join(', ')}`)
  rule(start === 'ready' || start === 'refused', `the daemon: ${start} ${lastLines(lines)}`)
  if (plan !== null)
    rule(plan.status === 'exit 1', `the plan of the repair: ${plan.status} ${plan.stderr.slice(0, 300)}`)
  if (repair !== null)
    rule(repair.status === 'exit 0', `repair: ${repair.status} ${repair.stderr.slice(0, 300)}`)
  rule(opened, `the spool does not open ${lastLines(lines)}`)
  rule(!opened || drained, 'the lanes do not become empty')
  rule(end === 'exit 0', `SIGTERM: ${end} ${lastLines(lines)}`)
}

function lastLines(lines: CellResult['lines']): string {
  return lines
    .slice(-2)
    .map((line) => JSON.stringify(line).slice(0, 400))
    .join(' ')
}

type Found = {
  result: CellResult
  batchesOf: ReadonlyMap<number, readonly string[]>
  hit: UnitContent
  hitNumbers: ReadonlySet<number>
}

function sealedRules(base: DamageBase, { result, batchesOf, hit, hitNumbers }: Found, rule: Rule): void {
  for (const [batchId, numbers] of base.sealed) {
    const isHit = hit.batchIds.includes(batchId) || numbers.some((number) => hitNumbers.has(number))
    if (isHit) continue
    const again = result.received.get(batchId)
    rule(
      !result.opened || again?.join() === numbers.join(),
      `the sealed batch ${batchId} is not sent again with the same payloads`,
    )
    const others = numbers.filter((number) => batchesOf.get(number)?.some((id) => id !== batchId))
    rule(
      others.length === 0,
      `${others.length} payloads of the sealed batch ${batchId} go under another batchId`,
    )
  }
  for (const what of result.wrong) rule(false, `the service counts ${what}`)
}

function keptRules({ size }: DamageBase, { status }: CellResult, hit: UnitContent, rule: Rule): void {
  if (status === null) return
  const { deadLetters, quarantined } = status.spool
  rule(
    deadLetters >= size.deadLetters - hit.deadLetters,
    `${deadLetters} of ${size.deadLetters} dead letters are left`,
  )
  rule(quarantined >= size.kept - hit.kept, `${quarantined} of ${size.kept} quarantined messages are left`)
}

/** What the daemon counts as damaged; its events and conditions name the same payloads. */
function reportedMissing({ status }: CellResult): number {
  return status?.totals.damaged ?? 0
}

function layoutOf(base: DamageBase, { file }: Cell): FileLayout {
  return base.files.find((one) => one.file === file)?.layout ?? { kind: 'other' }
}

export function hitUnits(layout: FileLayout, damage: Damage): readonly Unit[] {
  if (layout.kind === 'other') return []
  switch (damage.kind) {
    case 'missing':
      return layout.units
    case 'truncated':
      return layout.units.filter(({ end }) => end > damage.offset)
    case 'zeroed page':
      return layout.units.filter(
        ({ offset, end }) => end > damage.offset && offset < damage.offset + pageBytes,
      )
    case 'flipped bit':
      return layout.units.filter(({ offset, end }) => offset <= damage.offset && damage.offset < end)
    default:
      return assertNever(damage)
  }
}

function sumOf(units: readonly Unit[]): UnitContent {
  const sum: UnitContent = { numbers: [], batchIds: [], deadLetters: 0, kept: 0, state: 0, deletions: 0 }
  for (const { content } of units) {
    for (const number of content.numbers) sum.numbers.push(number)
    sum.batchIds.push(...content.batchIds)
    sum.deadLetters += content.deadLetters
    sum.kept += content.kept
    sum.state += content.state
    sum.deletions += content.deletions
  }
  return sum
}

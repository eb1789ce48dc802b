import { expect } from 'vitest'
import { exchangeOf, keptNamed } from '../../support/spool-world.ts'
import { spoolWords, startSpool } from '../../support/spool-steps.ts'
import { stepCases } from '../../support/step-cases.ts'

type One = Awaited<ReturnType<typeof startSpool>>
type Unbalanced = { table: string; found: number; totals: object }

stepCases(import.meta.filename, startSpool, {
  ...spoolWords,
  lostAre: (one: One, { lost }: { lost: number }) => {
    spoolWords.totals(one, { damaged: lost })
    spoolWords.reported(one, [lost, 'chunk_damaged', 'writes_missing'])
  },
  /** The batch with this index. */
  settleNow: async ({ w }: One, index: number) => {
    const batch = w.spool.batches()[index]!
    await w.spool.load(batch)
    await w.spool.settle(batch, { payloads: 'all delivered', requestId: null })
  },
  unbalanced: ({ w }: One, { table, found, totals }: Unbalanced) => {
    expect(w.eventsOf('records_unbalanced')).toMatchObject([{ table, known: 5, found }])
    expect(w.spool.totals()).toMatchObject(totals)
  },
  balanced: ({ w }: One, { totals }: Unbalanced) => {
    expect(w.eventsOf('records_unbalanced')).toEqual([])
    expect(w.spool.totals()).toMatchObject({ ...totals, recordsMissing: 0 })
  },
  /** A message comes and one goes during the count, and the bytes are right after the next start. */
  auditedDuring: async (one: One) => {
    const auditing = spoolWords.audited(one)
    one.w.spool.keepMessage(keptNamed('f', { device: null }).message)
    await one.w.spool.exchange(exchangeOf({ take: ['quarantine:default#0'] }))
    await auditing
    await spoolWords.audited(one)
    const { quarantineBytes } = one.w.spool.totals()
    await spoolWords.reopen(one)
    await spoolWords.audited(one)
    spoolWords.totals(one, { quarantineBytes })
  },
})

// The test of the test: each of these mistakes, put into a copy of the sources, must turn the model red, and
// for the reason that belongs to it.

import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')

type Mutation = { mistake: string; file: string; replace: [from: string, to: string][]; noticed: RegExp }

const mutations: Mutation[] = [
  {
    mistake: 'writes without sync',
    file: 'src/spool/chunk-log/committer.ts',
    replace: [['{ sync: true }', '{ sync: false }']],
    noticed: /was acknowledged and is nowhere|is not durable/,
  },
  {
    mistake: 'acknowledges before the commit',
    file: 'src/spool/chunk-log/committer.ts',
    replace: [['else open.acks.push(ack)', 'else ack(null)']],
    noticed: /was acknowledged and is nowhere/,
  },
  {
    mistake: 'hands a batch out before its seal is durable',
    file: 'src/spool/batches/seal.ts',
    replace: [['  await committer.control({', '  committer.control({']],
    noticed: /may be sent and is not durable/,
  },
  {
    mistake: 'settles in two writes',
    file: 'src/spool/batches/settle.ts',
    replace: [
      [
        '  return committer.control({',
        `  return committer.control({
    prepare(ops) {
      for (const ref of refs) ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, ref.firstSeq) })
    },
    committed() {},
  }).then(() => committer.control({`,
      ],
      ['  })\n}\n\nfunction planFor', '  }))\n}\n\nfunction planFor'],
    ],
    noticed: /was acknowledged and is nowhere|nothing was damaged|has a hole at/,
  },
  {
    mistake: 'gives numbers again after an out-of-order settle',
    file: 'src/spool/recovery/recovery.ts',
    replace: [
      ['lane.nextSeq = Math.max(totals?.nextSeq ?? 0, end.seq)', 'lane.nextSeq = end.seq'],
      [
        'lane.nextSeq = Math.max(lane.nextSeq, lane.sealSeq)',
        'lane.sealSeq = Math.min(lane.nextSeq, lane.sealSeq)',
      ],
    ],
    noticed: /number \d+:\d+ was given to|conservation_broken/,
  },
  {
    mistake: 'forgets the dedup window at a restart',
    file: 'src/spool/recovery/recovery.ts',
    replace: [['  await recoverWindow(state, options.windowMs)\n', '']],
    noticed: /is in \d places|was accepted under|is in \d chunks/,
  },
  {
    mistake: 'exchanges in two writes',
    file: 'src/spool/kept/exchange.ts',
    replace: [
      [
        'for (const place of places) group.take(place)\n',
        `for (const place of places) group.take(place)
    return new Promise((resolve) => committer.endMessage(resolve)).then(() => give(deps.group()))
    function give(group) {
`,
      ],
      ['        resolve()\n      })\n    })\n', '        resolve()\n      })\n    })\n    }\n'],
    ],
    noticed: /was acknowledged and is nowhere/,
  },
  {
    mistake: 'writes state beside the group of its message',
    file: 'src/spool/session.ts',
    replace: [
      [
        'remember: (name, value) => group.remember(name, value)',
        `remember: (name, value) => void setImmediate(() => setImmediate(() => {
      group.remember(name, value)
      committer.endMessage(null)
    }))`,
      ],
    ],
    noticed: /was acknowledged and is nowhere/,
  },
  {
    mistake: 'lets messages overtake an exchange that changes state',
    file: 'src/spool/kept/exchange.ts',
    replace: [
      [
        '    const { take, stateChanges } = exchange\n',
        '    const { take, stateChanges } = exchange\n    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))\n',
      ],
    ],
    noticed: /was acknowledged and is nowhere|is in \d places/,
  },
  {
    mistake: 'lets two exchanges take the same message',
    file: 'src/spool/kept/entry-reservations.ts',
    replace: [['      if (taken.has(id)) throw goneFault(id)\n', '']],
    noticed: /is in \d (places|chunks)|was accepted under|conservation/,
  },
  {
    mistake: 'forgets at a restart that a kept message was taken',
    file: 'src/spool/kept/message-shelf.ts',
    replace: [
      [
        'Object.assign(shelf, record)',
        'Object.assign(shelf, record, { nextSeq: record.headSeq + record.messages })',
      ],
    ],
    noticed: /kept \d+, taken|was acknowledged and is nowhere|conservation/,
  },
  {
    mistake: 'reseals in two writes',
    file: 'src/spool/batches/reseal.ts',
    replace: [
      [
        `      for (const { ref, chunk } of cut)
        ops.push({ type: 'put', key: seqKey(table.chunks, lane.id, ref.firstSeq), value: chunk.value })
      for (const { batch } of claims) ops.push(putClaim(batch))
    },
    committed() {},
  })
`,
        `      for (const { batch } of claims) ops.push(putClaim(batch))
    },
    committed() {},
  })
  await committer.control({
    prepare(ops: StoreOp[]) {
      for (const { ref, chunk } of cut)
        ops.push({ type: 'put', key: seqKey(table.chunks, lane.id, ref.firstSeq), value: chunk.value })
    },
    committed() {},
  })
`,
      ],
    ],
    noticed: /has a hole at|ends within a chunk/,
  },
  {
    mistake: 'hands the parts of a batch out before they are durable',
    file: 'src/spool/batches/reseal.ts',
    replace: [
      [
        '  await committer.control({\n    prepare(ops: StoreOp[]) {',
        '  committer.control({\n    prepare(ops: StoreOp[]) {',
      ],
    ],
    noticed: /may be sent and is not durable/,
  },
  {
    mistake: 'keeps the batchId of a batch that goes on as another',
    file: 'src/spool/batches/reseal.ts',
    replace: [
      [
        'batch: newBatch(state, lane, refs), refs',
        'batch: { ...newBatch(state, lane, refs), batchId: claim.batch.batchId }, refs',
      ],
    ],
    noticed: /changed from|was resealed and is/,
  },
  {
    mistake: 'forgets a turn when the power goes',
    file: 'src/spool/batches/reseal.ts',
    replace: [
      [
        '  claim.batch = batch\n  await committer',
        '  claim.batch = batch\n  if (claim.refs) return batch\n  await committer',
      ],
    ],
    noticed: /has another turn, not durably/,
  },
  {
    mistake: 'sends a batch whose turn is single as a batch',
    file: 'src/spool/recovery/recovery.ts',
    replace: [
      ['addClaim(lane, firstSeq, record)\n', "addClaim(lane, firstSeq, { ...record, turn: 'batch' })\n"],
    ],
    noticed: /goes by another operation than its claim says/,
  },
  {
    mistake: 'says that a lane was rotated before it is durable',
    file: 'src/spool/chunk-log/lane-rotation.ts',
    replace: [['  await committer.control({', '  void committer.control({']],
    noticed: /was rotated, not durably/,
  },
  {
    mistake: 'gives the number of a drained lane again',
    file: 'src/spool/recovery/recovery.ts',
    replace: [['state.nextLane = Math.max(state.nextLane, id + 1)', 'state.nextLane += 1']],
    noticed: /number \d+ was given to a lane again|number \d+:\d+ was given to|conservation/,
  },
  {
    mistake: 'deletes a lane that still holds something',
    file: 'src/spool/chunk-log/lane-cleanup.ts',
    replace: [
      ['    lane.sealSeq === lane.nextSeq &&\n', ''],
      ['    lane.openPayloads === 0 &&\n', ''],
      ['    settledPayloads(lane.settled) === lane.nextSeq &&\n', ''],
    ],
    noticed: /has payloads and no record/,
  },
  {
    mistake: 'puts late payloads before what is fresh',
    file: 'src/spool/chunk-log/group.ts',
    replace: [['return deviceTime !== null && state', 'return deviceTime === null && state']],
    noticed: /is late and stands in a live lane/,
  },
  {
    mistake: 'writes the receipt of a settle beside it',
    file: 'src/spool/batches/settle.ts',
    replace: [
      [
        '      if (receipt !== null && !putReceipt(state.receipts, receipt, options, ops))\n        state.counters.receiptsDropped += 1\n',
        `      if (receipt !== null)
        void committer
          .control({ prepare: (later) => void putReceipt(state.receipts, receipt, options, later), committed() {} })
          .catch(() => undefined)
`,
      ],
    ],
    noticed: /is settled and has no receipt/,
  },
  {
    mistake: 'gives the number of a forgotten receipt again',
    file: 'src/spool/chunk-log/receipt-queue.ts',
    replace: [['receipts.nextN = totals?.nextN ?? 0', 'receipts.nextN = 0']],
    noticed: /receipt \d+ was given/,
  },
]

describe('the model notices a spool that', () => {
  test.each(mutations)('$mistake', { timeout: 60_000 }, async ({ file, replace, noticed }) => {
    const copy = await mkdtemp(join(tmpdir(), 'gateway-mutation-'))
    try {
      for (const folder of ['src', 'test/model', 'test/support', 'package.json']) {
        await cp(join(root, folder), join(copy, folder), { recursive: true })
      }
      await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
      let source = await readFile(join(copy, file), 'utf8')
      for (const [from, to] of replace) {
        expect(source.split(from), `the text to mutate stands once in ${file}`).toHaveLength(2)
        source = source.replace(from, () => to)
      }
      await writeFile(join(copy, file), source)
      const mutated = run(process.execPath, ['test/model/run.ts', '--sequences', '1500'], { cwd: copy })
      await expect(mutated).rejects.toMatchObject({ stderr: expect.stringMatching(noticed) })
    } finally {
      await rm(copy, { recursive: true, force: true })
    }
  })
})

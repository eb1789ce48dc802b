// spool-mutations.ts: mistakes in the spool.

import type { Mutation } from '../mutations.ts'

export const spoolMutations: readonly Mutation[] = [
  // ---- bits that flip
  {
    name: 'a damaged dead letter stays where nobody can read it',
    file: 'spool/kept/dead-letter-table.ts',
    find: 'for (const [key, value] of page.damaged) await setAside(session, key, value)',
    replace: '',
    theme: 'flips',
  },
  {
    name: 'the checksum of what is known of devices is not looked at',
    file: 'device-records/checked-json.ts',
    find: 'if (isChecked && bytes',
    replace: 'if (bytes.length === 0 && bytes',
    theme: 'flips',
  },
  {
    name: 'the checksum of a chunk is not looked at',
    file: 'spool/chunk-log/chunk-codec.ts',
    find: 'if (value.readUInt32BE(1) !== expected) return null',
    replace: 'void expected',
  },
  {
    name: 'the checksum of a chunk does not cover its key',
    file: 'spool/chunk-log/chunk-codec.ts',
    find: 'crc32(value.subarray(checkedFrom), crc32(key.subarray(1)))',
    replace: 'crc32(value.subarray(checkedFrom), 0 * crc32(key))',
  },
  // ---- the committer and its groups
  {
    name: 'a message is acknowledged when it is added to its group',
    file: 'spool/chunk-log/committer.ts',
    find: 'else open.acks.push(ack)',
    replace: 'else {\n      open.unawaited += 1\n      ack(null)\n    }',
  },
  {
    name: 'the acknowledgements of a commit are given in the wrong order',
    file: 'spool/chunk-log/committer.ts',
    find: 'for (const ack of group.acks) ack(null)',
    replace: 'for (const ack of group.acks.toReversed()) ack(null)',
  },
  {
    name: 'the open group hears nothing of a failed write',
    file: 'spool/chunk-log/committer.ts',
    find: '...queue, open]',
    replace: '...queue]',
  },
  {
    name: 'a failed write counts as durable',
    file: 'spool/chunk-log/committer.ts',
    find: '(error: unknown) => fail(deps.explain(error)),',
    replace: '() => finish(),',
  },
  {
    name: 'payloads of a lane that is not live go before fresh ones',
    file: 'spool/chunk-log/group.ts',
    find: 'return deviceTime !== null && (state.isLate(provider, deviceTime) ?? from !== null)',
    replace: 'return false',
  },
  {
    name: 'dead letters that are requeued go before fresh payloads',
    file: 'spool/chunk-log/group.ts',
    find: "if (from === 'deadLetter') return true",
    replace: "if (from === 'deadLetter') return false",
  },
  {
    name: 'the bytes of a chunk are not counted in its lane',
    file: 'spool/chunk-log/lane.ts',
    find: 'lane.nextBytes += chunk.bytes\n',
    replace: '',
  },
  // ---- the dedup window
  {
    name: 'the dedup window is forgotten at a restart',
    file: 'spool/recovery/recovery.ts',
    find: '  await recoverWindow(state, repairs)\n',
    replace: '',
  },
  {
    name: 'records of the dedup window are overwritten after a restart',
    file: 'spool/recovery/recovery.ts',
    find: 'state.nextWindowRecord = Math.max(state.nextWindowRecord, n + 1)',
    replace: '',
  },
  {
    name: 'another half of a key is stored than is compared',
    file: 'spool/chunk-log/group.ts',
    find: 'keyCount * storedKeyBytes, windowKeyBytes - storedKeyBytes)',
    replace: 'keyCount * storedKeyBytes, 0, storedKeyBytes)',
  },
  {
    name: 'the dedup window is a thousand times too short',
    file: 'spool/chunk-log/dedup-window.ts',
    find: 'nowMs - group.addedAtMs <= options.windowMs',
    replace: 'nowMs - group.addedAtMs <= options.windowMs / 1000',
  },
  {
    name: 'a duplicate is stored',
    file: 'spool/message-intake.ts',
    find: "if (payload.duplicateRule === 'always' && addKey(session, heldKeys, payload.windowKey) === 'duplicate')\n        return 'duplicate'",
    replace: "if (payload.duplicateRule === 'always') addKey(session, heldKeys, payload.windowKey)",
  },
  {
    name: 'a new message is taken for a duplicate where the last bytes of its key are the same',
    file: 'spool/chunk-log/dedup-window.ts',
    find: "scratch.write(hexKey, 0, 16, 'hex')",
    replace: "scratch.write(hexKey.slice(-4).padStart(32, '1'), 0, 16, 'hex')",
  },
  // ---- seals
  {
    name: 'a batch is sent before its claim is durable',
    file: 'spool/batches/seal.ts',
    find: '  await claimed.durable\n  return claimed.batch',
    replace: '  void claimed.durable.catch(() => undefined)\n  return claimed.batch',
  },
  {
    name: 'a lane is sealed while another seal of it cuts a chunk',
    file: 'spool/batches/seal.ts',
    find: 'lane.sealing.then(() => claimNow(session, lane, limits))',
    replace: 'claimNow(session, lane, limits)',
  },
  {
    name: 'a cut does not wait for its write',
    file: 'spool/batches/seal.ts',
    find: '  if (pieces !== null) await claimed.durable\n',
    replace: '',
  },
  {
    name: 'a batch takes one payload too many',
    file: 'spool/batches/seal.ts',
    find: 'payloads + ref.count <= limits.payloadsMax &&',
    replace: 'payloads + ref.count <= limits.payloadsMax + 1 &&',
  },
  {
    name: 'a chunk is cut behind one payload too many',
    file: 'spool/batches/seal.ts',
    find: 'payloads === limits.payloadsMax || bodyBytes(payloads + 1',
    replace: 'payloads > limits.payloadsMax || bodyBytes(payloads + 1',
  },
  {
    name: 'the rest of a chunk that was cut is not written',
    file: 'spool/batches/seal.ts',
    find: 'for (const { ref, chunk } of pieces) {',
    replace: 'for (const { ref, chunk } of pieces.slice(0, 1)) {',
  },
  {
    name: 'a retry lane is sealed before its delay is over',
    file: 'spool/batches/seal.ts',
    find: '    if (limits.committedUntil !== undefined && ref.committedAt > limits.committedUntil) break\n',
    replace: '',
  },
  {
    name: 'a claim on the disk has another timestamp than in memory',
    file: 'spool/batches/claim.ts',
    find: '{ batchId, endSeq, payloads, bytes, timestamp, turn: operation, at }',
    replace: '{ batchId, endSeq, payloads, bytes, timestamp: timestamp + 1, turn: operation, at }',
  },
  {
    name: 'a recovered batch gets a new batchId',
    file: 'spool/batches/claim.ts',
    find: 'firstSeq, ...rest, operation, held, recovered: true }',
    replace: 'firstSeq, ...rest, batchId: crypto.randomUUID() as BatchId, operation, held, recovered: true }',
  },
  {
    name: 'claims are not recovered',
    file: 'spool/recovery/recovery.ts',
    find: 'addClaim(lane, firstSeq, record)\n',
    replace: '',
  },
  {
    name: 'the head of a body has the present time',
    file: 'spool/batches/batch-body.ts',
    find: '"timestamp":${timestamp},"data":[`',
    replace: '"timestamp":${Date.now()},"data":[`',
  },
  // ---- settles
  {
    name: 'a batch is settled in two writes',
    file: 'spool/batches/settle.ts',
    find: '  const { committer, counters, recent, receipts, options } = session\n  const { settlement, content, receipt } = what',
    replace: `  const { counters, recent, receipts, options } = session
  const committer = {
    async commit(part: { prepare(ops: StoreOp[]): void; committed?(): void }): Promise<void> {
      await session.committer.commit({
        prepare(ops) {
          for (const { firstSeq } of refs ?? [])
            ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, firstSeq) })
        },
      })
      await session.committer.commit(part)
    },
  }
  const { settlement, content, receipt } = what`,
  },
  {
    name: 'a settle leaves the claim',
    file: 'spool/batches/settle.ts',
    find: "      ops.push({ type: 'del', key: seqKey(table.batches, lane.id, batch.firstSeq) })\n",
    replace: '',
  },
  {
    name: 'a settle leaves the chunks',
    file: 'spool/batches/settle.ts',
    find: "        ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, ref.firstSeq) })\n",
    replace: '',
  },
  {
    name: 'a settle does not write the totals',
    file: 'spool/batches/settle.ts',
    find: '      putTotals(lane, ops)\n    },\n    committed() {',
    replace: '    },\n    committed() {',
  },
  {
    name: 'a settle writes no dead letters',
    file: 'spool/batches/settle.ts',
    find: '      putDeadLetters(session, plan.deadLetters, ops)\n',
    replace: '',
  },
  {
    name: 'a settled batch still counts as sealed',
    file: 'spool/chunk-log/lane-claims.ts',
    find: '  lane.claims.delete(firstSeq)\n  adjust(lane.claimed, claim.batch, -1)',
    replace: '  lane.claims.delete(firstSeq)',
  },
  {
    name: 'a payload that failed stays at its step',
    file: 'spool/batches/settle.ts',
    find: 'before.set(schedule, step + 1)',
    replace: 'before.set(schedule, step)',
  },
  {
    name: 'attempts are not counted in the payload',
    file: 'spool/batches/settle.ts',
    find: 'attempts + (payload.uncounted ? 0 : 1)',
    replace: 'attempts',
  },
  {
    name: 'the payloads of another step share a retry lane',
    file: 'spool/batches/settle.ts',
    find: 'plan.retries.find((retry) => retryKey(retry.role) === retryKey(role))',
    replace: 'plan.retries[0]',
  },
  {
    name: 'the receipt of a settle is written beside it',
    file: 'spool/batches/settle.ts',
    find: 'if (receipt !== null && !putReceipt(receipts, receipt, options, ops)) counters.receiptsDropped += 1',
    replace:
      'if (receipt !== null) void session.committer.commit({ prepare: (own) => void putReceipt(receipts, receipt, options, own) }).catch(() => undefined)',
  },
  // ---- reseals, operations, held batches
  {
    name: 'a batch is resealed in two writes',
    file: 'spool/batches/reseal.ts',
    find: `  await session.committer.commit({
    prepare(ops) {
      for (const { ref, chunk } of cut) putChunk(lane, ref.firstSeq, chunk, ops)
      for (const { batch } of claims) ops.push(putClaim(batch))
    },
  })`,
    replace: `  await session.committer.commit({ prepare: (ops) => void ops.push(...claims.map(({ batch }) => putClaim(batch))) })
  await session.committer.commit({
    prepare(ops) {
      for (const { ref, chunk } of cut) putChunk(lane, ref.firstSeq, chunk, ops)
    },
  })`,
  },
  {
    name: 'the parts of a batch are sent before they are durable',
    file: 'spool/batches/reseal.ts',
    find: `  await session.committer.commit({
    prepare(ops) {
      for (const { ref, chunk } of cut)`,
    replace: `  void session.committer.commit({
    prepare(ops) {
      for (const { ref, chunk } of cut)`,
  },
  {
    name: 'a part of a batch keeps its batchId',
    file: 'spool/batches/reseal.ts',
    find: 'newClaim(session, lane, refs, { timestamp })',
    replace: 'newClaim({ ...session, newId: () => claim.batch.batchId }, lane, refs, { timestamp })',
  },
  {
    name: 'the operation of a batch is forgotten in a power cut',
    file: 'spool/batches/reseal.ts',
    find: 'return rewrite(session, claimed, { ...claim.batch, operation })',
    replace: 'claim.batch = { ...claim.batch, operation }\n  return Promise.resolve(claim.batch)',
  },
  {
    name: 'it is forgotten in a power cut that a batch is held',
    file: 'spool/batches/reseal.ts',
    find: 'return rewrite(session, claimed, { ...claim.batch, held: stored })',
    replace:
      'setClaimBatch(claimed.lane, claim, { ...claim.batch, held: stored })\n  return Promise.resolve(claim.batch)',
  },
  {
    name: 'a held batch is sent after a restart',
    file: 'spool/batches/claim.ts',
    find: 'const { turn: operation, held = null, at: _, ...rest } = record',
    replace: 'const { turn: operation, held: _held, at: _, ...rest } = record\n  const held = null',
  },
  {
    name: 'a batch of the single operation is sent as a batch after a restart',
    file: 'spool/batches/claim.ts',
    find: 'const { turn: operation, held = null, at: _, ...rest } = record',
    replace: "const { turn: _turn, held = null, at: _, ...rest } = record\n  const operation = 'batch'",
  },
  // ---- lanes and their numbers
  {
    name: 'numbers are given again after a settle out of order',
    file: 'spool/recovery/recovery.ts',
    find: '    lane.committedSeq = lane.nextSeq\n    lane.appendedSeq',
    replace: `    let end = 0
    for await (const page of state.store.pages(tableRange(table.chunks)))
      for (const [key, value] of page)
        if (laneOf(key) === lane.id) end = seqOf(key) + (readChunk(value)?.count ?? 0)
    lane.nextSeq = end
    lane.sealSeq = Math.min(end, lane.sealSeq)
    lane.committedSeq = lane.nextSeq
    lane.appendedSeq`,
  },
  {
    name: 'the rotation of a lane is reported before it is durable',
    file: 'spool/chunk-log/lane-rotation.ts',
    find: '  await session.committer.commit({',
    replace: '  void session.committer.commit({',
  },
  {
    name: 'a rotated lane still takes fresh payloads',
    file: 'spool/chunk-log/lane-rotation.ts',
    find: '  session.liveLanes.delete(provider)\n',
    replace: '',
  },
  {
    name: 'the number of a drained lane is given again',
    file: 'spool/recovery/lane-recovery.ts',
    find: 'state.nextLane = Math.max(state.nextLane, (await lastSetAside(state)) + 1)',
    replace: 'state.nextLane = state.lanes.size + 1',
  },
  {
    name: 'a lane that still holds something is deleted',
    file: 'spool/chunk-log/lane-cleanup.ts',
    find: 'lane.sealSeq === lane.nextSeq &&\n    lane.appendedSeq === lane.nextSeq &&\n    lane.claims.size === 0 &&\n    lane.openPayloads === 0 &&\n    lane.walk === null &&\n    settledPayloads(lane.settled) === lane.nextSeq',
    replace: 'lane.appendedSeq === lane.nextSeq &&\n    lane.claims.size === 0 &&\n    lane.walk === null',
  },
  {
    name: 'new lanes are not recorded',
    file: 'spool/chunk-log/group.ts',
    find: '      if (isNew) putLane(lane, ops)\n',
    replace: '',
  },
  {
    name: 'new retry lanes are not recorded',
    file: 'spool/batches/settle.ts',
    find: '  if (!lane.recorded) putLane(lane, ops)\n',
    replace: '',
  },
  {
    name: 'the number of a forgotten receipt is given again',
    file: 'spool/recovery/receipt-recovery.ts',
    find: 'receipts.nextN = totals?.nextN ?? 0',
    replace: 'receipts.nextN = 0',
  },
  {
    name: 'the mark counts a write before it is durable',
    file: 'spool/high-water-mark/high-water-mark.ts',
    find: '    ops.push(count)\n',
    replace: '    ops.push(count)\n    put(false)\n',
  },
  {
    name: 'the mark is written at the start only',
    file: 'spool/high-water-mark/high-water-mark.ts',
    find: 'if (memory.markFailedAtMs === null) put(false)\n    else if (',
    replace: 'if (memory.markFailedAtMs !== null && ',
  },
  {
    name: 'the numbers of dead letters are not recovered',
    file: 'spool/recovery/recovery.ts',
    find: '    Object.assign(deadLetters, { count, bytes, bytesIn })\n',
    replace: '',
  },
  {
    name: 'two dead letters of one moment have one key',
    file: 'spool/kept/dead-letter-table.ts',
    find: '    state.nextDeadLetter += 1\n',
    replace: '',
  },
  // ---- the store
  {
    name: 'another spool is opened under the daemon',
    file: 'spool/store-supervisor.ts',
    find: 'if (opening !== null && memory.known !== null) await refuseOtherStore(options.path, memory.known)',
    replace: '',
  },
  {
    name: 'intake does not stop while the store is lost',
    file: 'spool/intake-limits.ts',
    find: "if (state === null) return 'store_lost'",
    replace: 'if (state === null) return null',
  },
  {
    name: 'an idle gateway looks at each file every second',
    file: 'storage/disk-watch.ts',
    find: 'const rareLookMs = 10_000',
    replace: 'const rareLookMs = 0',
  },
  {
    name: 'a disk that has room again is not noticed',
    file: 'spool/intake-limits.ts',
    find: 'diskLow = bytes < options.freeBytesMin * factor ||',
    replace: 'diskLow = diskLow || bytes < options.freeBytesMin * factor ||',
  },
  // ---- kept messages, state and exchanges
  {
    name: 'an exchange is made in two writes',
    file: 'spool/kept/exchange.ts',
    find: `    const group = committer.open()
    const payloads = areMapped ? all.filter(isNew) : all
    const duplicates = all.length - payloads.length
    const attachments = group.attachments()
    if (movesBack(entries, payloads.length > 0, keptMessages)) counters.movedBack += 1
    for (const id of take) reservations.take(id)
    for (const entry of entries) attachments.take(entry)
`,
    replace: `    const first = committer.open().attachments()
    for (const id of take) reservations.take(id)
    for (const entry of entries) first.take(entry)
    const rest = { take, payloads: all, areMapped, deadLetters, keptMessages, stateChanges }
    return committer.commit({ prepare: () => undefined }).then(() => addRest(rest, entries))
  }

  function addRest(
    { take, payloads: all, areMapped = false, deadLetters, keptMessages = [], stateChanges }: Exchange,
    entries: readonly StoredEntry[],
  ): Promise<Exchanged> {
    const group = committer.open()
    const payloads = areMapped ? all.filter(isNew) : all
    const duplicates = all.length - payloads.length
    const attachments = group.attachments()
    if (movesBack(entries, payloads.length > 0, keptMessages)) counters.movedBack += 1
`,
  },
  {
    name: 'messages overtake an exchange that changes state',
    file: 'spool/kept/exchange.ts',
    find: '    const { take, stateChanges } = exchange\n',
    replace:
      '    const { take, stateChanges } = exchange\n    await new Promise((resolve) => setTimeout(resolve, 1))\n',
  },
  {
    name: 'two exchanges take the same message',
    file: 'spool/kept/entry-reservations.ts',
    find: '      if (taken.has(id)) throw entryGone(id)\n',
    replace: '',
  },
  {
    name: 'it is forgotten at a restart that a kept message was taken',
    file: 'spool/kept/message-shelf.ts',
    find: '    shelf.committedSeq = shelf.nextSeq\n    shelf.openedSeq',
    replace:
      '    shelf.nextSeq = shelf.headSeq + shelf.messages\n    shelf.committedSeq = shelf.nextSeq\n    shelf.openedSeq',
  },
  {
    name: 'state is written beside the group of its message',
    file: 'spool/message-intake.ts',
    find: 'current().committer.open().attachments().putState(key, value)\n',
    replace: `const { committer } = current()
      setTimeout(() => {
        committer.open().attachments().putState(key, value)
        committer.endMessage(null)
      }, 1)\n`,
  },
  {
    name: 'what only the oldest record of late entries has is forgotten',
    file: 'spool/kept/late-records.ts',
    find: 'return { record: { key: keyOf(late, seq), body }, own, gone }',
    replace: 'return { record: { key: keyOf(late, seq), body }, own: [], gone }',
  },
]

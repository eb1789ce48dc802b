// ingest-mutations.ts: mistakes between the connection of a device and the spool, in the mapping and in its state.

import type { Mutation } from '../mutations.ts'

export const ingestMutations: readonly Mutation[] = [
  // ---- acknowledgements
  {
    name: 'a message whose write failed is acknowledged',
    file: 'ingest/broker/publish-handler.ts',
    find: '    if (fault === null) {\n',
    replace: '    if (fault === null || !gate.closed) {\n',
  },
  {
    name: 'PUBACK is the answer to QoS 2',
    file: 'ingest/broker/publish-handler.ts',
    find: 'message.qos === 1 ? puback : pubrec',
    replace: 'message.qos >= 1 ? puback : pubrec',
  },
  {
    name: 'PUBCOMP is never sent',
    file: 'ingest/broker/gate/acks/ack-order.ts',
    find: '      this.output.addAck(pubcomp, messageId, 0)\n',
    replace: '',
  },
  {
    name: 'acknowledgements overtake a PUBCOMP',
    file: 'ingest/broker/gate/acks/ack-order.ts',
    find: '    if (this.releases.length === 0) {\n      this.given += 1',
    replace: '    if (this.releases.length >= 0) {\n      this.given += 1',
  },
  {
    name: 'acknowledgements behind a PUBCOMP stay behind',
    file: 'ingest/broker/gate/acks/ack-order.ts',
    find: '    if (answered === releases.length) for (; acked < acks.length; acked += 1) this.giveAck(acks[acked]!)\n',
    replace: '',
  },
  {
    name: 'the quota of a client of MQTT 5 is not freed',
    file: 'ingest/broker/gate/acks/ack-output.ts',
    find: 'if (head !== pubrec || code >= refusingFrom) version5.quota.free()',
    replace: 'if (head === pubrec || code >= refusingFrom) version5.quota.free()',
  },
  {
    name: 'an acknowledgement that was given is not counted',
    file: 'ingest/broker/gate/gate.ts',
    find: '    this.reader.countAcked()\n',
    replace: '',
  },
  // ---- messages of several vehicles
  {
    name: 'the bad records of a message of several vehicles are forgotten',
    file: 'ingest/intake/result-router.ts',
    find: "      if (storeKept(one, message) === 'stored') counts.split += 1\n",
    replace: '',
  },
  {
    name: 'the good records of a message with a bad one are forgotten',
    file: 'mapping/read/map-result.ts',
    find: '    if (main !== null) return { ...main, rest: kept }\n',
    replace: '',
  },
  // ---- sessions and QoS 2
  {
    name: 'a message of QoS 2 is not remembered until its release',
    file: 'ingest/intake/intake.ts',
    find: '    if (message.qos === 2 && message.isRefused !== true) addUnreleased(message)\n',
    replace: '',
  },
  {
    name: 'a release is answered before it is durable',
    file: 'ingest/broker/stored-sessions/client-session.ts',
    find: '    await deps.durable()\n',
    replace: '    void deps.durable().catch(() => undefined)\n',
  },
  {
    name: 'a release is not stored',
    file: 'ingest/broker/stored-sessions/client-session.ts',
    find: '    deps.put(unreleasedRecordName(session.name.key, messageId), null)\n',
    replace: '',
  },
  {
    name: 'a released message is not forgotten',
    file: 'ingest/broker/stored-sessions/client-session.ts',
    find: 'const known = unreleased.delete(messageId)',
    replace: 'const known = unreleased.has(messageId)',
  },
  {
    name: 'a message of QoS 2 is known by its packet identifier alone',
    file: 'ingest/broker/stored-sessions/client-session.ts',
    find: 'return this.unreleased.get(messageId) === checksum',
    replace: 'return this.unreleased.has(messageId)',
  },
  {
    name: 'messages of QoS 2 are forgotten at a restart',
    file: 'ingest/broker/stored-sessions/session-restore.ts',
    find: '      session.know(record.messageId, record.checksum)\n',
    replace: '',
  },
  {
    name: 'a new session counts as present',
    file: 'ingest/broker/stored-sessions/stored-sessions.ts',
    find: 'present: found !== null,',
    replace: 'present: true,',
  },
  {
    name: 'a new session is not durable before its CONNACK',
    file: 'ingest/broker/stored-sessions/stored-sessions.ts',
    find: 'await Promise.all([session.created, written])',
    replace: 'void Promise.all([session.created, written]).catch(() => undefined)',
  },
  // ---- intake
  {
    name: 'every message with DUP is taken for a duplicate',
    file: 'ingest/intake/result-router.ts',
    find: 'message.dup && !isExact && (resends.isDuplicate(message)',
    replace: 'message.dup && !isExact && (true',
  },
  {
    name: 'a message without a time that comes again is always stored',
    file: 'ingest/intake/result-router.ts',
    find: 'message.dup && !isExact && (resends.isDuplicate(message)',
    replace: 'message.dup && isExact && (resends.isDuplicate(message)',
  },
  {
    name: 'a resent message equals every other one under its identifier',
    file: 'ingest/intake/untimed-resends.ts',
    find: '    if (entry.hash !== hashOf(message)) return false\n',
    replace: '',
  },
  {
    name: 'the journal of packet identifiers is not read at the start',
    file: 'ingest/intake/intake.ts',
    find: '    await resends.restore(spool.journal())\n',
    replace: '',
  },
  {
    name: 'a message overtakes those that wait',
    file: 'ingest/intake/intake.ts',
    find: 'return waiting.size() === 0 && spool.holdReason()',
    replace: 'return spool.holdReason()',
  },
  {
    name: 'a message that waited is not acknowledged',
    file: 'ingest/intake/intake.ts',
    find: 'take(next.message, next.ack)',
    replace: 'take(next.message, null)',
  },
  {
    name: 'messages that wait share their bytes with the socket',
    file: 'ingest/intake/waiting-messages.ts',
    find: 'bytes: Buffer.from(message.bytes)',
    replace: 'bytes: message.bytes',
  },
  {
    name: 'messages that wait are not taken when the store is back',
    file: 'ingest/intake/intake.ts',
    find: '    storeReturn = null\n    intakeChanged()\n',
    replace: '    storeReturn = null\n',
  },
  {
    name: 'nothing is taken any more once the store was lost',
    file: 'ingest/intake/intake.ts',
    find: 'void restore().catch(() => undefined)',
    replace: 'void state.restore().catch(() => undefined)',
  },
  {
    name: 'a message that cannot be mapped is acknowledged and dropped',
    file: 'ingest/intake/result-router.ts',
    find: '    spool.addDeadLetter(deadLetterFor({ ...result, store: unmappedStoreOf(result) }, envelope, ourTime.now()))\n',
    replace: '',
  },
  {
    name: 'a message that cannot be mapped closes the commit of others',
    file: 'ingest/intake/result-router.ts',
    find: "case 'unmappable':\n        if (storeKept(result, message) === 'duplicate') counts.duplicates += 1\n",
    replace: "case 'unmappable':\n        ignore(result.source ?? '', 'unmappable', 1)\n",
  },
  // ---- mapping and its state
  {
    name: 'a signal that is not plausible is sent',
    file: 'mapping/write.ts',
    find: "signals.map((signal) => (withheld.signals.includes(signal) ? '' : signal))",
    replace: 'signals',
  },
  {
    name: 'the time of the message is that of its arrival',
    file: 'mapping/read/read.ts',
    find: 'reading.time = reading.isStoredTime ? reading.stored!.at : checked',
    replace: 'reading.time = reading.isStoredTime ? reading.stored!.at : reading.arrivedAt',
  },
  {
    name: 'the name of a payload leaves out its time',
    file: 'mapping/write.ts',
    find: '`${entry.nameHead}${time ?? arrivedAt}$',
    replace: '`${entry.nameHead}$',
  },
  {
    name: 'the name of a payload leaves out its values',
    file: 'mapping/write.ts',
    find: '  for (const signal of signals) name += signal\n',
    replace: '',
  },
  {
    name: 'the state of the mapping is not read at the start',
    file: 'ingest/intake/intake.ts',
    find: '    await state.restore()\n    restoring = false',
    replace: '    restoring = false',
  },
  {
    name: 'changes of the state are not written',
    file: 'spool/kept/commit-attachments.ts',
    find: '    prepareState(state.stateEntries, stateWrites, ops)\n',
    replace: '',
  },
  {
    name: 'the totals of the state are not written',
    file: 'spool/kept/state-entries.ts',
    find: '  state.written.entries += writes.entries\n',
    replace: '',
  },
  // ---- start and stop
  {
    name: 'connections are taken before the records are read',
    file: 'ingest/ingest.ts',
    find: '    await intake.restore()\n    await access',
    replace: '    void intake.restore()\n    await access',
  },
  {
    name: 'a stop does not wait for the messages that were read',
    file: 'ingest/ingest.ts',
    find: '    await intake.finish()\n',
    replace: '',
  },
  {
    name: 'devices are read on while the daemon stops',
    file: 'app/stages.ts',
    find: '  stack.defer(() => ingest.stopAccepting())\n',
    replace: '',
  },
  {
    name: 'the spool is closed before the deliveries have ended',
    file: 'app/stages.ts',
    find: '  stack.defer(() => delivery.stop(deadline.signal))\n',
    replace: '  stack.defer(() => delivery.stop(deadline.signal))\n  stack.defer(() => spool.close())\n',
  },
  {
    name: 'a stop leaves the spool open',
    file: 'app/stages.ts',
    find: '      await spool.close()\n    })\n',
    replace: '    })\n',
  },
  // ---- lost positions
  {
    name: 'what lacks a lost position is not kept',
    file: 'mapping/read/message-records.ts',
    find: '  return lost === 0 ? null : {',
    replace: '  return lost === 0 || isSent ? null : {',
  },
  {
    name: 'what was sent in part is sent again as a whole',
    file: 'mapping/read/message-records.ts',
    find: 'sent: isSent ? watched.namesOf(present) : [],',
    replace: 'sent: [],',
  },
]

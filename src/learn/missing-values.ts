// missing-values.ts: lists the values that a proposal does not send, and the messages that it cannot use, as
// sentences.

import { quote } from '../std/quote.ts'
import type { Fit, Proposal } from './types.ts'

export function missingValuesOf({ fit, shapes, source }: Proposal): string[] {
  const messages = shapes.reduce((sum, shape) => sum + shape.messages, 0)
  const sum = (of: 'retained' | 'qos0' | 'oversized') => shapes.reduce((all, shape) => all + shape[of], 0)
  const sentences = [...payloadSentences(fit), ...messageSentences(fit)]
  const [retained, qos0, oversized] = [sum('retained'), sum('qos0'), sum('oversized')]
  if (retained === messages)
    sentences.push('Retained messages: all. None came live, so their times may be old.')
  else if (retained > 0)
    sentences.push(`Retained messages: ${retained} of ${messages}. Their times may be old.`)
  if (qos0 > 0)
    sentences.push(`QoS 0 messages: ${qos0} of ${messages}. They are lost when the connection breaks.`)
  if (oversized > 0) sentences.push(`Messages larger than 64 KiB: ${oversized}. They were not tried.`)
  if (fit.devices === 1 && !fit.namedBySender) sentences.push(oneDevice(fit.deviceNames[0] ?? '', source))
  return sentences
}

/** With one device nothing shows where the topics of others differ. */
function oneDevice(name: string, { topic }: Proposal['source']): string {
  const start = `Only one device was heard: ${quote(name, 80)}.`
  if (typeof topic !== 'string') return start
  return topic.includes('{device}')
    ? `${start} Check that {device} is at the right level of \`topic\`: ${topic}.`
    : `${start} If others publish on other topics, use + or {device} in \`topic\`.`
}

function payloadSentences({ fieldCounts, withoutModel }: Fit): string[] {
  const { payloads } = fieldCounts
  if (payloads === 0) return ['No payload yet: all messages are understood, but none has data to send now.']
  const sentences: string[] = []
  const report = (count: number, what: string, more = '') => {
    if (count === 0) sentences.push(`No ${what}${more}.`)
    else if (count < payloads)
      sentences.push(`${capital(what)} missing in ${payloads - count} of ${payloads} payloads${more}.`)
  }
  report(fieldCounts.position, 'position')
  report(fieldCounts.ownTime, 'device time', ': the arrival time is sent')
  if (fieldCounts.position > 0) {
    const among = (count: number) => count + payloads - fieldCounts.position
    report(fieldCounts.speed === 0 ? 0 : among(fieldCounts.speed), 'speed')
    report(fieldCounts.heading === 0 ? 0 : among(fieldCounts.heading), 'heading')
    report(fieldCounts.motion === 0 ? 0 : among(fieldCounts.motion), 'motion')
  }
  if (withoutModel !== null)
    sentences.push(
      `No model: ${withoutModel} are omitted. Set \`model\` in the source or in the device table.`,
    )
  if (withoutModel === null || fieldCounts.odometer > 0) report(fieldCounts.odometer, 'odometer')
  if (withoutModel === null || fieldCounts.hours > 0) report(fieldCounts.hours, 'engine hours')
  return sentences
}

function messageSentences(fit: Fit): string[] {
  const { taken, namedBySender, ignoredBy, refusedBy, omittedBy, future, unset } = fit
  const sentences: string[] = []
  if (namedBySender)
    sentences.push(
      'Devices are named by their connection, which a subscriber does not see. They must connect to the ' +
        'gateway itself.',
    )
  for (const [reason, count] of ignoredBy)
    sentences.push(`Ignored messages: ${count} of ${taken}, ${oneLine(reason)}.`)
  for (const [reason, { count, detail }] of refusedBy)
    sentences.push(`Dead letters: ${count} of ${taken} messages, ${reason}: ${oneLine(detail)}`)
  for (const [what, count] of omittedBy) sentences.push(`Omitted values: ${count}, ${what}.`)
  if (future > 0)
    sentences.push(
      `Device times in the future: ${future}. Check the device clocks; \`clocks.on_future\` applies.`,
    )
  if (unset > 0) sentences.push(`Device times of unset clocks: ${unset}. \`clocks.on_future\` applies.`)
  return sentences
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

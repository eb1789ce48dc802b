// missing-values.ts: lists the values that a proposal does not send, and the messages that it cannot use, as
// sentences.

import { quote } from '../std/quote.ts'
import { payloadValues, type Fit } from './fit.ts'
import type { Proposal } from './types.ts'

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
  const { payloads, position } = fieldCounts
  if (payloads === 0) return ['No payload yet: all messages are understood, but none has data to send now.']
  const sentences = payloadValues.flatMap(([name, { title, more = '', ofPosition, ofModel }]) => {
    const count = fieldCounts[name]
    if (ofPosition === true && position === 0) return []
    if (count === 0) return ofModel === true && withoutModel !== null ? [] : [`No ${title}${more}.`]
    const missing = (ofPosition === true ? position : payloads) - count
    return missing === 0 ? [] : [`${capital(title)} missing in ${missing} of ${payloads} payloads${more}.`]
  })
  if (withoutModel === null) return sentences
  const model = `No model: ${withoutModel} are omitted. Set \`model\` in the source or in the device table.`
  return [...sentences, model]
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

// missing-values.ts: what will be missing of what was heard, a sentence each.

import type { Fit } from './preset-fit.ts'
import type { Proposal } from './proposal.ts'

export function missingValuesOf({ fit, shapes, source }: Proposal): string[] {
  const messages = shapes.reduce((sum, shape) => sum + shape.messages, 0)
  const sum = (of: 'retained' | 'qos0' | 'oversized') => shapes.reduce((all, shape) => all + shape[of], 0)
  const sentences = [...payloadSentences(fit), ...messageSentences(fit)]
  const [retained, unsafe, oversized] = [sum('retained'), sum('qos0'), sum('oversized')]
  if (retained === messages)
    sentences.push('All of it was retained: nothing came live, so the times may be old.')
  else if (retained > 0) sentences.push(`${retained} of ${messages} messages were retained ones, of earlier.`)
  if (unsafe > 0)
    sentences.push(
      `QoS 0 in ${unsafe} of ${messages} messages: such a one is lost when the connection breaks.`,
    )
  if (oversized > 0) sentences.push(`${oversized} messages are larger than 64 KiB and were not looked at.`)
  if (shapes.some(({ filter }) => !filter.includes('+')) && !('preset' in source))
    sentences.push(
      'One device was heard only; where others publish elsewhere, put a + or {device} into `topic`.',
    )
  return sentences
}

function payloadSentences({ fieldCounts, withoutModel }: Fit): string[] {
  const { payloads } = fieldCounts
  if (payloads === 0)
    return ['Nothing to send yet: each message was understood and has no payload in it now.']
  const sentences: string[] = []
  const tell = (count: number, what: string, more = '') => {
    if (count === 0) sentences.push(`No ${what} at all${more}.`)
    else if (count < payloads)
      sentences.push(`${capital(what)} missing in ${payloads - count} of ${payloads} payloads${more}.`)
  }
  tell(fieldCounts.position, 'position')
  tell(fieldCounts.ownTime, 'device time', ': the arrival time is sent')
  if (fieldCounts.position > 0) {
    const among = (count: number) => count + payloads - fieldCounts.position
    tell(fieldCounts.speed === 0 ? 0 : among(fieldCounts.speed), 'speed')
    tell(fieldCounts.heading === 0 ? 0 : among(fieldCounts.heading), 'heading')
    tell(fieldCounts.motion === 0 ? 0 : among(fieldCounts.motion), 'word on motion')
  }
  if (withoutModel !== null)
    sentences.push(
      `No model: ${withoutModel} are left out. Say \`model:\` in the source, or a model for each in the device table.`,
    )
  if (withoutModel === null || fieldCounts.odometer > 0) tell(fieldCounts.odometer, 'odometer')
  if (withoutModel === null || fieldCounts.hours > 0) tell(fieldCounts.hours, 'engine hours')
  return sentences
}

function messageSentences(fit: Fit): string[] {
  const { taken, namedBySender, ignoredBy, refusedBy, omittedBy, future, unset } = fit
  const sentences: string[] = []
  if (namedBySender)
    sentences.push(
      'Devices are named by the name that they connect with, which is not heard here: they must connect to the gateway ' +
        'itself.',
    )
  for (const [reason, count] of ignoredBy)
    sentences.push(`${count} of ${taken} messages would be ignored: ${oneLine(reason)}.`)
  for (const [reason, { count, detail }] of refusedBy)
    sentences.push(`${count} of ${taken} messages would become dead letters, ${reason}: ${oneLine(detail)}`)
  for (const [what, count] of omittedBy) sentences.push(`Left out ${count} times: ${what}.`)
  if (future > 0)
    sentences.push(`${future} times lie in the future: check the clocks, \`clocks.on_future\` decides.`)
  if (unset > 0)
    sentences.push(`${unset} times are those of clocks that were never set; \`clocks.on_future\` decides.`)
  return sentences
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

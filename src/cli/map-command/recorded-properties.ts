// recorded-properties.ts: the properties of MQTT 5 of a recorded message, as the gateway writes them in tap
// lines and envelopes, or as mosquitto_sub writes them:
//
//   "userProperties":{"vin":"V1"},"properties":{"contentType":"text/csv","correlation":"AAE="}
//   "properties":{"content-type":"text/csv","correlation-data":"a","user-properties":{"vin":"V1"}}
//
// Values of another type are left out.

import type { Message, MessageProperties, UserProperties } from '../../domain/message.ts'

type Line = Readonly<Record<string, unknown>>

/** Without keys for what the message does not have. */
export function recordedProperties(recorded: Line): Pick<Message, 'userProperties' | 'properties'> {
  const { properties: written } = recorded
  const given = isLine(written) ? written : {}
  const userProperties = textsIn(recorded['userProperties'] ?? given['user-properties'])
  const properties = propertiesIn(given)
  return {
    ...(Object.keys(userProperties).length > 0 && { userProperties }),
    ...(Object.keys(properties).length > 0 && { properties }),
  }
}

function propertiesIn(given: Line): MessageProperties {
  const contentType = textOf(given['contentType'] ?? given['content-type'])
  const responseTopic = textOf(given['responseTopic'] ?? given['response-topic'])
  // mosquitto_sub writes the bytes as text.
  const data = textOf(given['correlation-data'])
  const correlation = textOf(given['correlation']) ?? (data && Buffer.from(data).toString('base64'))
  const expiryS = given['expiryS'] ?? given['message-expiry-interval']
  return {
    ...(contentType !== undefined && { contentType }),
    ...(responseTopic !== undefined && { responseTopic }),
    ...(correlation !== undefined && { correlation }),
    ...((given['isText'] === true || given['payload-format-indicator'] === 1) && { isText: true }),
    ...(typeof expiryS === 'number' && { expiryS }),
  }
}

function textsIn(value: unknown): UserProperties {
  const entries = isLine(value) ? Object.entries(value) : []
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function isLine(value: unknown): value is Line {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// user-properties.ts: makes the user properties of a message of MQTT 5 readable by paths: as `$properties` of
// the message. They are part of no record, no list of keys and no JSON.

import type { UserProperties } from '../../domain/message.ts'

const propertiesKey = '$properties'

/** They replace what the message has under that key. A message that is no object has none. */
export function addUserProperties(root: unknown, userProperties: UserProperties): void {
  if (typeof root !== 'object' || root === null || !Object.isExtensible(root)) return
  // Paths find own keys of usual objects.
  const value = { ...userProperties }
  Object.defineProperty(root, propertiesKey, { value, enumerable: false, configurable: true })
}

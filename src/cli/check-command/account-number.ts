// account-number.ts: the number of the account that an access key id belongs to. Ids of the cloud provider
// contain it (40 bits in base 32); a person compares it with the account that is registered at the service.

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Null for an id of another form, such as one from before 2019. */
export function accountIn(accessKeyId: string): string | null {
  const [, code = ''] = /^(?:AKIA|ASIA)([Q-Z2-7][A-Z2-7]{15})$/.exec(accessKeyId) ?? []
  if (code === '') return null
  let bits = 0n
  // Ten characters are 50 bits: the 48 of the first six bytes, and two more.
  for (const character of code.slice(0, 10)) bits = (bits << 5n) | BigInt(alphabet.indexOf(character))
  const number = ((bits >> 2n) & 0x7fff_ffff_ff80n) >> 7n
  const text = number.toString().padStart(12, '0')
  return text.length === 12 ? text : null
}

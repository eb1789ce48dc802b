// traccar-tests.ts: the messages in the published decoder tests of Traccar, read from the Java files, which are
// never copied:
//
//   verifyPosition(decoder, request(HttpMethod.POST, "/", buffer("{\"_type\":..}")));
//   verifyPositions(decoder, false, binary("0000" + "08.."));
//
// The name of the call says what Traccar makes of the message.

/** `positions`, or anything else: attributes of the last position, or nothing. */
export type PublishedCall = { verify: string; message: string }

const call = /verify(\w+)\(\s*decoder,([\s\S]*?)\)\s*;\s*(?:\/\/[^\n]*)?\n/g
const body = /(?:buffer|binary)\(([\s\S]*)/
const literal = /"(?:[^"\\]|\\.)*"/g

export function callsIn(java: string): PublishedCall[] {
  return [...java.matchAll(call)].flatMap(([, verify = '', args = '']) => {
    const literals = body.exec(args)?.[1]?.match(literal)
    // The escapes of Java that are used are those of JSON.
    const message = literals?.map((text) => JSON.parse(text) as string).join('')
    return message === undefined ? [] : [{ verify, message }]
  })
}

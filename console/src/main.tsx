// The entry of the console.
